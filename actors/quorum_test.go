package actors_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/schema"
)

// quorumPatience is how long calls in these tests wait for a majority.
const quorumPatience = 10 * time.Second

func startQuorum(t tb, domains map[schema.Domain]kernel.Domain) *system {
	return startHosting(t, faultfs.NewDisk(), domains, idempotency.New(), textLog, actors.Hosting{}, &actors.Quorum{Patience: quorumPatience})
}

// errorIDs returns the ids of the errors in the answers that have arrived.
func errorIDs(c *client) (list []string) {
	synctest.Wait()
	for _, a := range c.pending() {
		list = append(list, strings.TrimSpace(a.Meta.Causation+" "+a.Meta.Error))
	}
	return list
}

func expectErrors(t testing.TB, c *client, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, errorIDs(c)); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}

// TestQuorumHolds shows that an answer leaves when a majority has what it reveals, and not before: for a command its own
// entry, for a query those of the commands that it may have seen.
func TestQuorumHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startQuorum(t, newRecorders().domains())
		a, b, c := s.connect(), s.connect(), s.connect()
		b.send(get("before"))
		expect(t, b, `before ""`)
		a.send(set("a", "x"))
		expectNothing(t, a)
		b.send(get("b"))
		expectNothing(t, b)
		a.send(set("c", "y"))
		s.kernel.Acknowledge(1)
		expectNothing(t, a)
		s.kernel.Acknowledge(2) // the first set; the query before has entry 1
		expect(t, a, "a 1")
		expect(t, b, `b "x"`)
		b.send(get("d"))
		expectNothing(t, b)
		c.send(processes("e")) // no command has changed its result
		expect(t, c, `e ""`)
		s.kernel.Acknowledge(1) // late, and lower
		expectNothing(t, a)
		s.kernel.Acknowledge(100)
		expect(t, a, "c 2")
		expect(t, b, `d "x y"`)
		s.endCleanly()
	})
}

// TestQuorumNotAcknowledgedAtStart shows that the end of a journal is not revealed before a majority has it.
func TestQuorumNotAcknowledgedAtStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := faultfs.NewDisk()
		states := newRecorders()
		first := startOn(t, disk, states.domains(), idempotency.New(), textLog)
		c := first.connect()
		c.send(set("a", "x"))
		expect(t, c, "a 1")
		if err := first.end(); err != nil {
			t.Fatal(err)
		}
		s := startHosting(t, disk, states.domains(), idempotency.New(), textLog, actors.Hosting{}, &actors.Quorum{Patience: quorumPatience})
		c = s.connect()
		c.send(get("b"))
		expectNothing(t, c)
		s.kernel.Acknowledge(1)
		expect(t, c, `b "x"`)
	})
}

// TestQuorumAway shows a kernel whose bus acknowledges nothing: a call waits for a limited time and gets what is known,
// further commands are refused before they are written, the operator can end processes and look at the kernel, and
// everything continues afterwards. Nothing is lost: entries that were not acknowledged in time are there, and a repeated
// key gets the first outcome.
func TestQuorumAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states := newRecorders()
		s := startQuorum(t, states.domains())
		s.tokens.held = map[int64]*kernel.Token{7: allowed(7, "*")}
		a, b := s.connect(), s.connect()
		agent := s.serveAs(newLink(schema.OsMessage, schema.MaxLine, unbounded), 7)
		a.send(keyed("k", set("a", "x")), get("g"))
		expectNothing(t, a)
		time.Sleep(quorumPatience - time.Second)
		expectNothing(t, a)
		time.Sleep(2 * time.Second)
		expectErrors(t, a, "a cluster.unknown_outcome", "g cluster.away")
		written := len(s.entries())
		for range 100 {
			a.send(set("b", "y"), keyed("k", set("a", "x")))
			agent.send(terminate("c", 1), spawn("d", "s"))
			expectErrors(t, a, "b cluster.away", "a cluster.away")
			expectErrors(t, agent, "c cluster.away", "d cluster.away")
		}
		if n := len(s.entries()); n != written {
			t.Errorf("refused calls left %d entries", n-written)
		}
		b.send(terminate("t", 1))
		synctest.Wait()
		line := string(b.link.out.drain())
		if !strings.Contains(line, `"causation":"t","kernel":{`) || !strings.Contains(line, `"acknowledged":"disk"}`) {
			t.Errorf("answer to an urgent command: %s, want a mark that only this disk has it", line)
		}
		b.send(processes("p"))
		expect(t, b, `p "Syscall.Terminate"`)
		agent.send(processes("q"))
		expectNothing(t, agent) // it may have seen the end of process 1

		s.kernel.Acknowledge(100)
		expect(t, agent, `q "Syscall.Terminate"`)
		a.send(keyed("k", set("e", "x")), set("f", "z"))
		expect(t, a, "e 1", "f 2")
		checkReplay(t, s, states)
		s.endCleanly()
	})
}

// TestQuorumEffect shows that no effect runs before a majority has its intent, and none at all after its caller got the
// answer that the outcome is unknown.
func TestQuorumEffect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFetches()
		s := startQuorum(t, map[schema.Domain]kernel.Domain{schema.Http: f})
		c := s.connect()
		c.send(fetchOf("a", "u"))
		expectNothing(t, c)
		if n := f.count(); n != 0 {
			t.Fatalf("%d effects ran before a majority had their intent", n)
		}
		s.kernel.Acknowledge(1)
		synctest.Wait()
		if n := f.count(); n != 1 {
			t.Fatalf("%d effects ran, want 1", n)
		}
		expectNothing(t, c) // its outcome has an entry too
		s.kernel.Acknowledge(2)
		says(t, c, "a", "", `"u"`)

		c.send(fetchOf("b", "v"))
		time.Sleep(quorumPatience + 2*time.Second)
		expectErrors(t, c, "b cluster.unknown_outcome")
		s.kernel.Acknowledge(100)
		synctest.Wait()
		if n := f.count(); n != 1 {
			t.Errorf("%d effects ran, want 1: one ran after its caller was told that the outcome is unknown", n)
		}
		if open := s.keys.Open(); len(open) != 0 {
			t.Errorf("intents without an end: %v", open)
		}

		c.send(fetchOf("d", "w"))
		synctest.Wait()
		s.kernel.Acknowledge(100)
	})
}

// TestQuorumOutcomeUnknown disconnects the bus between an intent and its end.
func TestQuorumOutcomeUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFetches()
		s := startQuorum(t, map[schema.Domain]kernel.Domain{schema.Http: f})
		c := s.connect()
		c.send(fetchOf("a", "u"))
		synctest.Wait()
		s.kernel.Acknowledge(1)
		expectNothing(t, c)
		time.Sleep(quorumPatience + 2*time.Second)
		expectErrors(t, c, "a cluster.unknown_outcome")
		s.kernel.Acknowledge(2)
		expectNothing(t, c)
	})
}

// TestFenced shows that a kernel whose stream another kernel writes ends, and acknowledges nothing more.
func TestFenced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startQuorum(t, newRecorders().domains())
		a := s.connect()
		a.send(set("a", "x"))
		expectNothing(t, a)
		other := errors.New("another kernel leads")
		s.kernel.Fence(other)
		<-s.kernel.Stopping()
		expectErrors(t, a, "a cluster.fenced")
		s.kernel.Acknowledge(100)
		a.send(set("b", "y"))
		expect(t, a, "b 503")
		if err := s.end(); !errors.Is(err, other) {
			t.Errorf("close kernel: %v, want %v", err, other)
		}
	})
}

// TestQuorumAwayAtTheEnd shows that a kernel can end while its bus is disconnected.
func TestQuorumAwayAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startQuorum(t, newRecorders().domains())
		a := s.connect()
		a.send(set("a", "x"))
		expectNothing(t, a)
		begun := time.Now()
		s.kernel.RequestShutdown(nil)
		time.Sleep(quorumPatience / 2)
		expectErrors(t, a, "a cluster.unknown_outcome")
		s.endCleanly()
		if took := time.Since(begun); took > quorumPatience {
			t.Errorf("the end took %v", took)
		}
	})
}
