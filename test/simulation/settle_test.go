package simulation_test

import (
	"fmt"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/budget"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
)

// pauses are the sleeps of settle between rounds in which nothing moves. The effect of a turn is visible only in later rounds.
var pauses = []time.Duration{0, 0, 11 * time.Minute, time.Second, 0, 0, 0}

// settle runs the kernel until nothing is in flight, and checks that every frame is answered.
func (w *world) settle() {
	w.note("settle")
	w.fault(faultfs.Fault{})
	w.disk.Free()
	w.store.full = false
	w.open()
	defer func() { w.gate.Shut() }()
	for quiet := 0; quiet < len(pauses) && w.err == nil && w.alive(); {
		synctest.Wait()
		moved := len(w.beside) > 0
		w.runAll()
		moved = w.finish() || moved
		for _, c := range w.clients {
			moved = moved || len(c.link.flying) > 0 || c.link.unread > 0
			if n := len(c.link.flying); n > 0 {
				c.link.arrive(n)
			}
			c.link.read(c.link.unread)
		}
		moved = w.turn() || moved
		w.check()
		if quiet++; moved {
			quiet = 0
			continue
		}
		if quiet == len(pauses) && w.resume() {
			w.open() // in case of a power cut
			quiet = 0
			continue
		}
		if pauses[quiet-1] > 0 {
			w.fail(w.oracle.overslept(w.clients))
		}
		time.Sleep(pauses[quiet-1]) // for retries of the kernel, and the waits of receives
	}
	if w.err != nil || !w.alive() {
		return
	}
	for _, c := range w.clients {
		if len(c.pending) > 0 {
			w.fail(fmt.Errorf("client %d: %d frames are not answered, from %s on, and nothing is in flight", c.number, len(c.pending), c.waits()))
		}
	}
	w.fail(w.oracle.quiescent(w.clients))
	w.compare()
}

// nothingKept checks that no calls of a budget are reserved when nothing is in flight.
func (w *world) nothingKept() error {
	call := &kernel.Call{Request: kernel.Request{Syscall: schema.BudgetShow.Row(), Input: &schema.BudgetShowInput{}}}
	result, err := budget.NewDomain(w.state.budgets, w.state.procs.Processes()).Decide(call)
	if err != nil {
		return err
	}
	out, err := schema.BudgetShow.Decode(result.Data)
	if err != nil {
		return err
	}
	for _, b := range out.Budgets {
		if b.Calls != nil && b.Calls.Reserved != "0" {
			return fmt.Errorf("pid %d: calls %+v are kept, and none is in flight", b.PID, *b.Calls)
		}
	}
	return nil
}

// compare checks that a replay of the journal gives the current state.
func (w *world) compare() {
	fresh, err := w.replayed(w.journal.Written())
	if err != nil {
		w.fail(err)
		return
	}
	w.fail(same(w.state.domains, fresh.domains))
	w.fail(same(map[schema.Domain]record.Part{record.BudgetsPart: w.state.budgets}, map[schema.Domain]record.Part{record.BudgetsPart: fresh.budgets}))
	w.fail(w.nothingKept())
}
