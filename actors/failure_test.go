package actors_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// expect compares the answers that have arrived.
func expect(t testing.TB, c *client, want ...string) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, show(c.pending())); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

// expectNothing checks that no answer has arrived.
func expectNothing(t testing.TB, c *client) {
	t.Helper()
	synctest.Wait()
	if got := c.pending(); len(got) != 0 {
		t.Errorf("answered too early: %v", show(got))
	}
}

// TestFailuresOfDecide shows that a call that fails or panics affects only its caller: it changes nothing, and the cause is
// only in the log.
func TestFailuresOfDecide(t *testing.T) {
	t.Parallel()
	tests := []struct {
		message string
		code    string
		logged  []string
	}{
		{message: "panic", code: "500", logged: []string{"syscall panicked", internals, "goroutine ", "(*fake).Decide"}},
		{message: "fail", code: "500", logged: []string{"syscall failed", internals, "call.id=b"}},
		{message: "refuse", code: "409"},
	}
	for _, test := range tests {
		t.Run(test.message, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				domain := newFake()
				s := start(t, domain)
				caller, neighbour := s.connect(), s.connect()
				caller.send(echo("a", "1"), echo("b", test.message), echo("c", "2"))
				neighbour.send(echo("n", "3"))
				synctest.Wait()
				wire := string(caller.link.out.drain())
				for _, inside := range []string{internals, "goroutine", "panic:", ".go:"} {
					if strings.Contains(wire, inside) {
						t.Errorf("%q is shown to the client:\n%s", inside, wire)
					}
				}
				for _, id := range []string{"a", "b", "c"} {
					if n := strings.Count(wire, `"causation":"`+id+`"`); n != 1 {
						t.Errorf("%d answers to %s:\n%s", n, id, wire)
					}
				}
				if !strings.Contains(wire, `"code":`+test.code+`,`) {
					t.Errorf("no error %s:\n%s", test.code, wire)
				}
				expect(t, neighbour, `n {"echo":"3"}`)
				caller.send(echo("d", "4"))
				expect(t, caller, `d {"echo":"4"}`)

				for _, change := range domain.changes() {
					if strings.Contains(change, test.message) {
						t.Errorf("applied: %s", change)
					}
				}
				log := s.log.String()
				for _, words := range test.logged {
					if !strings.Contains(log, words) {
						t.Errorf("the log does not have %q:\n%s", words, log)
					}
				}
				if len(test.logged) == 0 && strings.Contains(log, "ERROR") {
					t.Errorf("the log has a refusal as an error:\n%s", log)
				}
				s.endCleanly()
			})
		})
	}
}

// TestPanicInApply shows the end of a kernel whose state may be wrong: calls that wait for the domain are answered, later
// calls to it too, and calls to other domains are served to the end.
func TestPanicInApply(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broken := newFake()
		s := startWith(t, map[schema.Domain]kernel.Domain{schema.Kernel: broken, other: newFake()})
		first, second, late := s.connect(), s.connect(), s.connect()
		first.send(echo("a", "hold"), echo("b", "die"), echo("c", "1"))
		synctest.Wait()
		first.send(echo("d", "1")) // its reader is busy with the domain, and reads this after the panic
		second.send(echo("e", "1"))
		synctest.Wait()
		second.send(echo("f", "1"), "no JSON", echo("g", "1"))
		elsewhere := newLink(schema.OsMessage, schema.MaxLine, unbounded)
		feed := s.kernel.NewFeed(elsewhere, "feed")
		sendTo(t, feed, "hold 1")
		sendTo(t, feed, "other:2")
		synctest.Wait()
		select {
		case <-s.kernel.Stopping():
			t.Error("the kernel stops for no reason")
		default:
		}

		broken.release()
		<-s.kernel.Stopping()
		expect(t, first, "a 500", "b 500", "c 500", "d 500")
		expect(t, second, "e 500", "f 500", " 400", "g 500")
		for range 2 { // a connection that has not made a call before, then one that has
			late.send(echo("h", "1"), echo("i", "2"))
			expect(t, late, "h 500", "i 500")
		}
		sendTo(t, feed, "other:3")
		sendTo(t, feed, "4")
		sendTo(t, feed, "other:5")
		feed.End()
		elsewhere.out.end()
		want := []string{"hold 1 500", `2 {"echo":"2"}`, `3 {"echo":"3"}`, "4 500", `5 {"echo":"5"}`}
		if diff := cmp.Diff(want, show(newClient(t, elsewhere).all())); diff != "" {
			t.Errorf("answers to the feed (-want +got):\n%s", diff)
		}

		err := s.end()
		if err == nil || !strings.Contains(err.Error(), "domain/kernel") || !strings.Contains(err.Error(), internals) {
			t.Errorf("close kernel: %v, want the panic of its domain", err)
		}
		if log := s.log.String(); !strings.Contains(log, "(*fake).Apply") {
			t.Errorf("the log does not show where the panic came from:\n%s", log)
		}
		if diff := cmp.Diff([]string{"c-1 hold", "c-1 die"}, broken.changes()); diff != "" {
			t.Errorf("applied (-want +got):\n%s", diff)
		}
	})
}

// TestFailureAfterShutdown shows that a failure after the request to shut down is still reported.
func TestFailureAfterShutdown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, newFake())
		c := s.connect()
		c.send(echo("a", "stop"))
		expect(t, c, `a {"echo":"stop"}`)
		<-s.kernel.Stopping()
		c.send(echo("b", "die"))
		expect(t, c, "b 500")
		if err := s.end(); err == nil || !strings.Contains(err.Error(), internals) {
			t.Errorf("close kernel: %v, want the panic", err)
		}
	})
}

// TestPanicInConnection shows that a panic in a connection ends only that connection, also while it waits for room in its
// window.
func TestPanicInConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, newFake())
		l := newLink(schema.OsMessage, schema.MaxLine, 10)
		writes := 0
		l.onWrite = func() {
			if writes++; writes == 2 {
				panic(internals)
			}
		}
		victim, neighbour := s.serve(l), s.connect()
		victim.send(slices.Repeat([]string{echo("a", "1")}, 1000)...)
		synctest.Wait()
		l.out.widen(unbounded)
		<-victim.done
		neighbour.send(echo("b", "1"))
		expect(t, neighbour, `b {"echo":"1"}`)
		if log := s.log.String(); !strings.Contains(log, "(*link).Write") {
			t.Errorf("the log does not show where the panic came from:\n%s", log)
		}
		s.endCleanly()
	})
}
