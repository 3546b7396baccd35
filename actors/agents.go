package actors

import (
	"log/slog"
	"strconv"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema"
)

// agents is the actor that has the effects of calls done. It has an actor of its own for every process with a program, and
// sends a call's answer on once what the call needed done is.
type agents struct {
	kernel *Kernel
	alive  map[int64]*actor.PID
	begun  map[int64][]*pending // calls that wait until a program is started
	going  map[int64][]*pending // calls that wait until a program is gone
	// halting are calls that wait until a program has been stopped where it is, or goes on.
	halting map[int64][]*pending
	gone    map[int64]bool // of those alive: nothing of the program is left, and that is noted
	ends    int            // agents that have ended
	deaf    bool           // nothing can be journaled any more
	ending  bool
	ended   chan struct{} // closed when the end is over
}

// pending is a batch that waits until what it needs done is done.
type pending struct {
	batch *frames
	left  int
}

// effect is what a call needs done that is on disk.
type effect struct {
	effect *kernel.Work
	cause  kernel.Call // without what it says
}

// effects are those of a batch, whose answers wait for them; nobody waits where it is nil.
type effects struct {
	list  []effect
	batch *frames
}

// LogValue tells nothing of the calls.
func (e effects) LogValue() slog.Value { return slog.IntValue(len(e.list)) }

// resumed is an agent of the kernel's last life.
type resumed struct{ process.Hosted }

// endAll has all programs ended, at once where hurry says so.
type endAll struct{ hurry bool }

// What agents say of themselves.
type (
	halted   struct{ pid int64 } // the program is as it was last told to be: stopped where it is, or going on
	settled  struct{ pid int64 } // the first start has come to an end, whichever
	ended    struct{ pid int64 } // nothing of the program is left, which cannot be noted yet
	vanished struct{ pid int64 } // the program is gone for good
)

func newAgents(k *Kernel) *agents {
	return &agents{
		kernel: k, alive: make(map[int64]*actor.PID), begun: make(map[int64][]*pending),
		going: make(map[int64][]*pending), halting: make(map[int64][]*pending), gone: make(map[int64]bool), ended: k.ended,
	}
}

// Receive handles effects and what becomes of them.
func (m *agents) Receive(ctx actor.Context) {
	switch msg := ctx.Message().(type) {
	case *actor.Started:
		for _, name := range []schema.Domain{schema.Process, record} {
			if pid, ok := m.kernel.domains[name]; ok {
				ctx.Watch(pid)
			}
		}
	case effects:
		m.begin(ctx, &msg)
	case halted:
		m.answerHalt(ctx, msg.pid)
	case settled:
		m.answerStart(ctx, msg.pid)
	case ended:
		m.answerStop(ctx, msg.pid)
	case vanished:
		m.programGone(ctx, msg.pid)
		ctx.Send(m.alive[msg.pid], dismissed{}) // it is told nothing more
	case resumed:
		m.agent(ctx, &agent{program: msg.Program, from: &msg.Hosted, cause: kernel.Call{Caller: kernel.Caller{Conn: "recovery"}, Origin: msg.Origin}})
	case retimed:
		m.tell(ctx, msg)
	case endAll:
		m.ending = true
		m.tell(ctx, stop{shutdown: true, hurry: msg.hurry})
		m.checkEnd()
	case *actor.Terminated:
		m.died(ctx, msg.Who)
	case *actor.Stopped: // where it panicked, the kernel ends, and nothing may be left
		for _, name := range []schema.Domain{schema.Process, record} {
			if pid, ok := m.kernel.domains[name]; ok {
				ctx.Unwatch(pid)
			}
		}
		m.tell(ctx, stop{shutdown: true, hurry: true})
		m.alive, m.ending = nil, true
		m.checkEnd()
	}
}

// begin has done what the calls of a batch need done.
func (m *agents) begin(ctx actor.Context, e *effects) {
	wait := &pending{batch: e.batch, left: 1}
	for i := range e.list {
		one := &e.list[i]
		if p := one.effect.Start; p != nil && !m.ending { // else the next start finds that it was never begun
			wait.left++
			m.begun[p.PID] = []*pending{wait}
			m.agent(ctx, &agent{program: *p, cause: one.cause})
		}
		if pid := one.effect.Await; m.begun[pid] != nil {
			wait.left++
			m.begun[pid] = append(m.begun[pid], wait)
		}
		for _, pid := range one.effect.Halt {
			if m.alive[pid] != nil {
				wait.left++
				m.halting[pid] = append(m.halting[pid], wait)
				ctx.Send(m.alive[pid], halt{one.effect.On})
			}
		}
		for _, pid := range one.effect.Stop {
			if m.alive[pid] != nil && !m.gone[pid] {
				if pid != one.cause.Caller.PID { // a process that ends itself is answered while it still runs
					wait.left++
					m.going[pid] = append(m.going[pid], wait)
				}
				ctx.Send(m.alive[pid], stop{ordered: true, cause: one.cause})
			}
		}
	}
	m.settle(ctx, wait)
}

// agent starts the actor of a process.
func (m *agents) agent(ctx actor.Context, a *agent) {
	pid := a.program.PID
	a.kernel, a.parent = m.kernel, ctx.Self()
	if len(m.alive) == 0 {
		m.kernel.hosting.Occupied(true)
	}
	m.alive[pid] = m.kernel.spawn("agent/"+strconv.FormatInt(pid, 10), a)
	ctx.Watch(m.alive[pid])
	if m.deaf {
		ctx.Send(m.alive[pid], deafened{})
	}
}

// answerStart answers the spawn of a process.
func (m *agents) answerStart(ctx actor.Context, pid int64) {
	for _, wait := range m.begun[pid] {
		m.settle(ctx, wait)
	}
	delete(m.begun, pid)
}

// programGone notes that nothing of the program is left.
func (m *agents) programGone(ctx actor.Context, pid int64) {
	m.gone[pid] = true
	m.answerStop(ctx, pid)
}

// answerHalt answers the calls that waited for the program to be stopped where it is, or to go on.
func (m *agents) answerHalt(ctx actor.Context, pid int64) {
	for _, wait := range m.halting[pid] {
		m.settle(ctx, wait)
	}
	delete(m.halting, pid)
}

// answerStop answers the calls that waited for the end of the program.
func (m *agents) answerStop(ctx actor.Context, pid int64) {
	for _, wait := range m.going[pid] {
		m.settle(ctx, wait)
	}
	delete(m.going, pid)
}

// settle counts one thing as done, and answers when that was the last.
func (m *agents) settle(ctx actor.Context, wait *pending) {
	if wait.left--; wait.left == 0 && wait.batch != nil {
		ctx.Send(wait.batch.replyTo, &wait.batch.batch)
	}
}

// forgetEvery is how many agents end between two looks for folders of forgotten agents.
const forgetEvery = 256

// died notes the end of an agent's actor, or of one without which nothing can be journaled.
func (m *agents) died(ctx actor.Context, who *actor.PID) {
	for pid, at := range m.alive {
		if at != who {
			continue
		}
		delete(m.alive, pid)
		m.answerHalt(ctx, pid)
		if !m.gone[pid] {
			m.panicked(ctx, pid)
		}
		delete(m.gone, pid)
		if len(m.alive) == 0 {
			m.kernel.hosting.Occupied(false)
		}
		if m.ends++; m.ends%forgetEvery == 0 && !m.ending {
			m.kernel.tasks.Go(m.kernel.hosting.Forget)
		}
		m.checkEnd()
		return
	}
	m.deaf = true
	m.tell(ctx, deafened{})
}

// panicked answers what waits for an agent whose actor has failed, and ends its process.
func (m *agents) panicked(ctx actor.Context, pid int64) {
	m.answerStart(ctx, pid)
	m.programGone(ctx, pid)
	why := "the kernel failed to look after it"
	cause := &kernel.Call{Caller: kernel.Caller{Conn: "recovery"}, Origin: m.kernel.origin}
	step := schema.ProcessNoteEnd.With(&schema.ProcessEndInput{PID: pid, Reason: process.Unknown, Why: &why})
	if m.deaf {
		return // the next start finds it
	}
	end, err := m.kernel.step(cause, step)
	if err != nil {
		m.kernel.log.Error("end of a program not journaled", "pid", pid, "error", err)
		return
	}
	end.owed = true // nobody else tells it
	m.kernel.send(end)
}

// tell sends a message to all agents that may still act on it.
func (m *agents) tell(ctx actor.Context, message any) {
	for pid, at := range m.alive {
		if !m.gone[pid] {
			ctx.Send(at, message)
		}
	}
}

func (m *agents) checkEnd() {
	if !m.ending || len(m.alive) > 0 {
		return
	}
	select {
	case <-m.ended:
	default:
		close(m.ended)
	}
}
