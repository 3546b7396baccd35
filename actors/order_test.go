package actors_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// other is a second domain, in addition to the one that has all the syscalls.
const other schema.Domain = "other"

// TestPipelining has a connection that sends while its domain is busy with another's call. Its frames were sent to the
// domain before the last connection's call, so they run before it. Frames after one for another domain, or after one that
// is answered without a domain, were not.
func TestPipelining(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		feed  []string // "message", "other:message" or "fault"
		first []string // of the feed's calls, run before the last connection's call
		rest  []string
	}{
		{name: "one domain", feed: []string{"a", "b", "c"}, first: []string{"a", "b", "c"}},
		{name: "another domain waits", feed: []string{"a", "other:b", "c"}, first: []string{"a"}, rest: []string{"c"}},
		{name: "another domain first", feed: []string{"other:a", "b", "c"}, rest: []string{"b", "c"}},
		{name: "a fault waits", feed: []string{"a", "fault", "b"}, first: []string{"a"}, rest: []string{"b"}},
		{name: "a fault first", feed: []string{"fault", "a", "b"}, first: []string{"a", "b"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				busy := newFake()
				s := startWith(t, map[schema.Domain]kernel.Domain{schema.Kernel: busy, other: newFake()})
				holder, last := s.connect(), s.connect()
				synctest.Wait()
				holder.send(echo("hold", "hold"))
				synctest.Wait()

				l := newLink(schema.OsMessage, schema.MaxLine, unbounded)
				feed := s.kernel.NewFeed(l, "feed")
				for _, item := range test.feed {
					sendTo(t, feed, item)
				}
				synctest.Wait()
				last.send(echo("last", "last"))
				synctest.Wait()
				busy.release()
				feed.End()
				synctest.Wait()

				want := []string{"c-1 hold"}
				for _, said := range test.first {
					want = append(want, "feed "+said)
				}
				want = append(want, "c-2 last")
				for _, said := range test.rest {
					want = append(want, "feed "+said)
				}
				if diff := cmp.Diff(want, busy.history()); diff != "" {
					t.Errorf("order in the busy domain (-want +got):\n%s", diff)
				}
				checkFeedAnswers(t, l, test.feed)
			})
		})
	}
}

// TestOtherDomainWaits shows that a frame for an idle domain does not start while an earlier one is in flight.
func TestOtherDomainWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		busy, idle := newFake(), newFake()
		s := startWith(t, map[schema.Domain]kernel.Domain{schema.Kernel: busy, other: idle})
		s.connect().send(echo("hold", "hold"))
		synctest.Wait()

		l := newLink(schema.OsMessage, schema.MaxLine, unbounded)
		feed := s.kernel.NewFeed(l, "feed")
		items := []string{"hold 1", "other:2", "other:3", "fault"}
		for _, item := range items {
			sendTo(t, feed, item)
		}
		for range 2 { // while the domain is busy with another connection, then with this one
			synctest.Wait()
			if ran := idle.history(); len(ran) != 0 {
				t.Errorf("ran before the frame ahead of it was answered: %q", ran)
			}
			if out := l.out.drain(); len(out) != 0 {
				t.Errorf("answered out of order: %s", out)
			}
			busy.release()
		}
		feed.End()
		synctest.Wait()
		if diff := cmp.Diff([]string{"feed 2", "feed 3"}, idle.history()); diff != "" {
			t.Errorf("order in the other domain (-want +got):\n%s", diff)
		}
		checkFeedAnswers(t, l, items)
	})
}

// TestOrderUnderLoad has several connections that send to two domains as fast as they can: the frames of each run in order
// in any schedule.
func TestOrderUnderLoad(t *testing.T) {
	t.Parallel()
	const conns, frames = 8, 200
	var mu sync.Mutex
	ran := make(map[string][]string)
	note := domainFunc(func(call *kernel.Call) {
		mu.Lock()
		defer mu.Unlock()
		ran[call.Caller.Conn] = append(ran[call.Caller.Conn], text(call))
	})
	s := startWith(t, map[schema.Domain]kernel.Domain{schema.Kernel: note, other: note})
	var all sync.WaitGroup
	for i := range conns {
		name := fmt.Sprintf("feed-%d", i)
		l := newLink(schema.OsMessage, schema.MaxLine, unbounded)
		feed := s.kernel.NewFeed(l, name)
		all.Go(func() {
			var want []string
			for n := range frames {
				said := fmt.Sprint(n)
				to := []schema.Domain{schema.Kernel, other}[(n*n/7+n*i)%2]
				feed.Send(to, newCall(t, name, said))
				want = append(want, said)
			}
			feed.End()
			mu.Lock()
			defer mu.Unlock()
			if diff := cmp.Diff(want, ran[name]); diff != "" {
				t.Errorf("%s ran in another order (-want +got):\n%s", name, diff)
			}
			checkFeedAnswers(t, l, want)
		})
	}
	all.Wait()
}
