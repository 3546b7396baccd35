package actors_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// seven connects as the agent 7.
func (s *system) seven() *client {
	return s.serveAs(newLink(schema.OsMessage, schema.MaxLine, unbounded), 7)
}

// TestRefusedTickTakesNoKey shows that a call that was refused because of its tick has not used its key, before and after a
// restart.
func TestRefusedTickTakesNoKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := startKeyed(t)
		c := s.seven()
		ahead := func(id string) string { return command(id, "Memory.Set", `{"key":"x","value":1,"tick":9}`) }
		c.send(keyed("k", ahead("1")))
		expect(t, c, "1 422")
		next, states := s.restart()
		operator := next.connect()
		operator.send(command("2", "Memory.Set", `{"key":"y","value":1,"tick":10}`))
		expect(t, operator, "2 1")
		d := next.seven()
		d.send(keyed("k", ahead("3")), keyed("k", ahead("4")))
		expect(t, d, "3 2", "4 2")
		checkReplay(t, next, states)
	})
}

// TestConflictBeforeTheFirst shows that a conflict with a call in flight, whose entry precedes that call's, does not get
// the key at the next start.
func TestConflictBeforeTheFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := startMailboxes(t)
		c, d := s.seven(), s.seven()
		c.send(keyed("k", minute("1")))
		synctest.Wait()
		d.send(keyed("k", set("2", "x")))
		expect(t, d, "2 409")
		time.Sleep(time.Minute)
		expect(t, c, `1 [""]`)
		next, _ := s.restart()
		e := next.seven()
		e.send(keyed("k", minute("3")), keyed("k", set("4", "x")))
		expect(t, e, `3 [""]`, "4 409")
	})
}

// TestRepetitionAtTheEndOfTheDay has a repetition that waits for the journal while its key expires and is used again: it is
// still recorded as a repetition, and no start runs it.
func TestRepetitionAtTheEndOfTheDay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states := newRecorders()
		s := startWith(t, states.domains())
		a := s.connect()
		a.send(keyed("k", set("1", "x")))
		expect(t, a, "1 1")
		time.Sleep(24*time.Hour - 2*time.Millisecond)
		states[schema.Memory].decide = func(call *kernel.Call, _ []string) (kernel.Result, bool, error) {
			if word(call) == "slow" { // everything in the same batch is written when it is done
				time.Sleep(10 * time.Millisecond)
			}
			return kernel.Result{}, false, nil
		}
		a.send(keyed("k", set("2", "x")), set("w", "slow"), keyed("k", set("3", "x")))
		time.Sleep(20 * time.Millisecond)
		expect(t, a, "2 1", "w 2", "3 3")
		checkReplay(t, s, states)
	})
}
