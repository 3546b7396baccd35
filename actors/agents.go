package actors

import (
	"strconv"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema"
)

func newAgents(k *Kernel) *agents {
	return &agents{
		kernel: k, alive: make(map[int64]*actor.PID), awaitStart: make(map[int64][]*pending),
		awaitEnd: make(map[int64][]*pending), awaitPause: make(map[int64][]*pending), over: make(map[int64]bool), ended: k.ended,
	}
}

// Receive handles effects and the reports of agents.
func (m *agents) Receive(ctx actor.Context) {
	switch msg := ctx.Message().(type) {
	case *actor.Started:
		for _, name := range []schema.Domain{schema.Process, appender} {
			if pid, ok := m.kernel.domains[name]; ok {
				ctx.Watch(pid)
			}
		}
	case effects:
		m.begin(ctx, &msg)
	case halted:
		m.answerHalt(ctx, msg.pid)
	case startDone:
		m.answerStart(ctx, msg.pid)
	case ended:
		m.answerStop(ctx, msg.pid)
	case endedForGood:
		m.programOver(ctx, msg.pid)
		ctx.Send(m.alive[msg.pid], dismissed{}) // it gets no further messages
	case resumed:
		m.agent(ctx, &agent{program: msg.Program, from: &msg.Hosted, cause: kernel.Cause{Conn: "recovery", Origin: msg.Origin}})
	case retimed, expired:
		m.tell(ctx, msg)
	case endAll:
		m.ending = true
		m.tell(ctx, stop{shutdown: true, hurry: msg.hurry})
		m.checkEnd()
	case *actor.Terminated:
		m.died(ctx, msg.Who)
	case *actor.Stopped: // after a panic the kernel ends, and no program may stay
		for _, name := range []schema.Domain{schema.Process, appender} {
			if pid, ok := m.kernel.domains[name]; ok {
				ctx.Unwatch(pid)
			}
		}
		m.tell(ctx, stop{shutdown: true, hurry: true})
		m.alive, m.ending = nil, true
		m.checkEnd()
	}
}

// begin carries out the effects of a batch.
func (m *agents) begin(ctx actor.Context, e *effects) {
	wait := &pending{batch: e.batch, left: 1}
	for i := range e.list {
		one := &e.list[i]
		if p := one.effect.Start; p != nil && !m.ending { // otherwise the next start finds that it was never started
			wait.left++
			m.awaitStart[p.PID] = []*pending{wait}
			m.agent(ctx, &agent{program: *p, cause: one.cause})
		}
		if pid := one.effect.Await; m.awaitStart[pid] != nil {
			wait.left++
			m.awaitStart[pid] = append(m.awaitStart[pid], wait)
		}
		for _, pid := range one.effect.Halt {
			if m.alive[pid] != nil {
				wait.left++
				m.awaitPause[pid] = append(m.awaitPause[pid], wait)
				ctx.Send(m.alive[pid], halt{one.effect.On})
			}
		}
		for _, pid := range one.effect.Stop {
			if m.alive[pid] != nil && !m.over[pid] {
				if pid != one.cause.PID { // a process that ends itself is answered while it still runs
					wait.left++
					m.awaitEnd[pid] = append(m.awaitEnd[pid], wait)
				}
				ctx.Send(m.alive[pid], stop{ordered: true, cause: one.cause})
			}
		}
	}
	m.effectDone(ctx, wait)
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
	if m.unrecordable {
		ctx.Send(m.alive[pid], journalFailed{})
	}
}

// answerStart answers the spawn of a process.
func (m *agents) answerStart(ctx actor.Context, pid int64) {
	for _, wait := range m.awaitStart[pid] {
		m.effectDone(ctx, wait)
	}
	delete(m.awaitStart, pid)
}

// programOver notes that the program has ended.
func (m *agents) programOver(ctx actor.Context, pid int64) {
	m.over[pid] = true
	m.answerStop(ctx, pid)
}

// answerHalt answers the calls that waited for the program to pause or continue.
func (m *agents) answerHalt(ctx actor.Context, pid int64) {
	for _, wait := range m.awaitPause[pid] {
		m.effectDone(ctx, wait)
	}
	delete(m.awaitPause, pid)
}

// answerStop answers the calls that waited for the end of the program.
func (m *agents) answerStop(ctx actor.Context, pid int64) {
	for _, wait := range m.awaitEnd[pid] {
		m.effectDone(ctx, wait)
	}
	delete(m.awaitEnd, pid)
}

// effectDone counts one effect as done, and answers after the last.
func (m *agents) effectDone(ctx actor.Context, wait *pending) {
	if wait.left--; wait.left == 0 && wait.batch != nil {
		ctx.Send(wait.batch.replyTo, &wait.batch.batch)
	}
}

// forgetEvery is the number of ended agents after which Hosting.Forget is called.
const forgetEvery = 256

// died handles the death of an agent's actor, or of one without which nothing can be journaled.
func (m *agents) died(ctx actor.Context, who *actor.PID) {
	for pid, at := range m.alive {
		if at != who {
			continue
		}
		delete(m.alive, pid)
		if !m.ending {
			m.kernel.tasks.Go(func() { m.kernel.hosting.Ended(pid) })
		}
		m.answerHalt(ctx, pid)
		if !m.over[pid] {
			m.panicked(ctx, pid)
		}
		delete(m.over, pid)
		if len(m.alive) == 0 {
			m.kernel.hosting.Occupied(false)
		}
		if m.ends++; m.ends%forgetEvery == 0 && !m.ending {
			m.kernel.tasks.Go(m.kernel.hosting.Forget)
		}
		m.checkEnd()
		return
	}
	m.unrecordable = true
	m.tell(ctx, journalFailed{})
}

// panicked answers the calls that wait for an agent whose actor has failed, and ends its process.
func (m *agents) panicked(ctx actor.Context, pid int64) {
	m.answerStart(ctx, pid)
	m.programOver(ctx, pid)
	why := "the kernel failed to look after it"
	cause := &kernel.Cause{Conn: "recovery", Origin: m.kernel.origin}
	step := noteEnd(&programEnd{PID: pid, Reason: process.Unknown, Why: &why})
	if m.unrecordable {
		return // the next start records it
	}
	end, err := m.kernel.step(cause, step)
	if err != nil {
		m.kernel.log.Error("end of a program not journaled", "pid", pid, "error", err)
		return
	}
	end.mustApply = true // nothing else reports it
	m.kernel.send(end)
}

// tell sends a message to all agents whose program has not ended.
func (m *agents) tell(ctx actor.Context, message any) {
	for pid, at := range m.alive {
		if !m.over[pid] {
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
