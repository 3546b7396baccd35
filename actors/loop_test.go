package actors_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/kernel/idempotency"
)

// TestSlowSync shows that a slow sync delays only those that wait for it: another goroutine continues the loop. The
// goroutine that lost the loop still reports, and no answer is lost.
func TestSlowSync(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startWith(t, newRecorders().domains())
		long := time.Duration(0)
		s.disk.Hook = func(op faultfs.Op) {
			if op.Kind == faultfs.Sync && strings.HasSuffix(op.Path, ".ndjson") {
				time.Sleep(long)
			}
		}
		a, b := s.connect(), s.connect()
		for _, pause := range []time.Duration{0, 500 * time.Millisecond, time.Microsecond, 10 * time.Millisecond, time.Second} {
			long = pause
			a.send(set("a", "x"))
			time.Sleep(pause / 2)
			b.send(ping("b", "1"))
			if slow := pause > 5*time.Millisecond; slow {
				time.Sleep(pause / 4)
				expectNothing(t, a)
			} else {
				time.Sleep(pause)
			}
			expect(t, b, `b ""`)
			time.Sleep(time.Second)
			checkCauses(t, []string{"a"}, a.take(1))
		}
	})
}

// TestSyncsAreShared has two clients that each send the next command when the last is answered, with different starts, on a
// slow disk. Their commands soon share syncs.
func TestSyncsAreShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const rounds = 20
		s := startWith(t, newRecorders().domains())
		disk := &faultfs.Slow{Each: 10 * time.Millisecond}
		s.disk.Hook = disk.Hook
		var clients sync.WaitGroup
		for i := range 2 {
			c := s.connect()
			clients.Go(func() {
				time.Sleep(time.Duration(i) * 5 * time.Millisecond)
				for n := range rounds {
					id := fmt.Sprint(i, "-", n)
					c.send(set(id, "x"))
					checkCauses(t, []string{id}, c.take(1))
				}
			})
		}
		clients.Wait()
		if got := disk.Syncs(); got > rounds+5 {
			t.Errorf("%d syncs for %d commands of each of two clients", got, rounds)
		}
	})
}

// TestSlowSyncAtTheEnd ends a kernel after another goroutine has taken over its loop.
func TestSlowSyncAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startWith(t, newRecorders().domains())
		s.disk.Hook = func(op faultfs.Op) {
			if op.Kind == faultfs.Sync && strings.HasSuffix(op.Path, ".ndjson") {
				time.Sleep(time.Second)
			}
		}
		a := s.connect()
		a.send(set("a", "x"))
		time.Sleep(5 * time.Millisecond)
		a.endInput()
		checkCauses(t, []string{"a"}, a.rest())
		s.endCleanly()
	})
}

// TestNextSegment starts the next segment of the journal, which waits for the disk: no call whose entry is not written is
// answered meanwhile, the loop continues, and nothing is lost.
func TestNextSegment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states := newRecorders()
		s := startHosting(t, faultfs.NewDisk(), states.domains(), idempotency.New(), textLog, actors.Hosting{}, segments(16<<10))
		named := 0
		s.disk.Hook = func(op faultfs.Op) {
			switch {
			case op.Kind == faultfs.Rename:
				named++
			case op.Kind == faultfs.Sync:
				time.Sleep(100 * time.Millisecond)
			}
		}
		a, b := s.connect(), s.connect()
		for i := range 200 {
			a.send(set(fmt.Sprint("a", i), "x"))
			b.send(ping(fmt.Sprint("b", i), "1"), "no frame") // it is refused without an entry
			time.Sleep(time.Second)
			if got := len(a.pending()) + len(b.pending()); got != 3 {
				t.Fatalf("%d answers to 3 frames", got)
			}
		}
		if named < 3 {
			t.Errorf("%d segments were begun", named)
		}
		checkReplay(t, s, states)
	})
}
