package actors

import (
	"context"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// begin goes on where the last life of the kernel left off, or at the start.
func (a *agent) begin(ctx actor.Context) {
	switch h := a.from; {
	case h == nil:
		a.start(ctx)
	case h.Ended(), h.Unsettled():
		a.noteEnd(ctx, a.unknownEnd(h))
	default:
		if a.until = h.Blocked; h.Blocked >= heldTicks {
			a.until = 0 // it was held, and is not any more
		}
		a.pause(ctx)
	}
}

// heldTicks is for how long a program is noted to rest that is held: no clock comes to it.
const heldTicks = 1 << 52

// task runs work on a goroutine, and has its report sent to the agent.
func (a *agent) task(ctx actor.Context, work func() (report any)) {
	self, root := ctx.Self(), a.kernel.root
	a.kernel.tasks.Go(func() {
		if report := work(); report != nil {
			root.Send(self, report)
		}
	})
}

func (a *agent) start(ctx actor.Context) {
	a.phase, a.run = starting, &run{}
	a.runs++
	hosting, program, deadline := a.kernel.hosting, a.program, a.kernel.budgets.Deadline(a.program.PID)
	a.task(ctx, func() any {
		p, err := hosting.start(&program, deadline)
		return started{p, err}
	})
}

// started notes that the program runs. One that is not wanted any more was never noted to, and goes at once.
func (a *agent) started(ctx actor.Context, m started) {
	if m.err != nil {
		a.kernel.log.Info("program not started", "pid", a.program.PID, "error", m.err)
		a.noteEnd(ctx, a.notStarted(m.err))
		return
	}
	p := m.process
	a.run.process = p
	a.limit()
	if d := a.kernel.processes.Process(a.program.PID); d != nil && d.Paused {
		a.halt(ctx, true)
	}
	a.task(ctx, func() any {
		<-p.Done()
		exit, _ := p.Wait(context.Background()) // it has ended: there is nothing to wait for
		// Whoever was handed an end of its channel has nothing to say in its name, and is not waited for. It has not been served
		// yet where that does not fail.
		past := time.Unix(1, 0)
		_ = p.Conn().SetReadDeadline(past)
		_ = p.Conn().SetWriteDeadline(past)
		return exited{exit}
	})
	if a.stop.ordered || a.stop.shutdown {
		a.phase = running
		a.terminate(ctx)
		return
	}
	a.phase = notingRun
	again := a.runs > 1 || a.from != nil && (a.from.Begun || a.from.Ran())
	a.write(ctx, schema.ProcessNoteStart.With(&schema.ProcessStartInput{
		PID: a.program.PID, OSPID: int64(p.OSPID()), Sandbox: p.Sandbox(), Again: again,
	}))
}

// limit has the program end with the wall_seconds of its budget, or of an ancestor's.
func (a *agent) limit() {
	if a.run != nil && a.run.process != nil {
		a.run.process.EndAt(a.kernel.budgets.Deadline(a.program.PID))
	}
}

// halt has the program stop where it is, or go on. That looks for its processes, which takes time: a goroutine does it. What was asked for
// last is done last, since each looks whether it is still wanted.
func (a *agent) halt(ctx actor.Context, on bool) {
	parent, root, report := a.parent, a.kernel.root, halted{a.program.PID}
	if a.run == nil || a.run.process == nil {
		ctx.Send(parent, report) // it looks when it is started
		return
	}
	p := a.run.process
	p.Want(on)
	a.task(ctx, func() any {
		p.Halt()
		root.Send(parent, report)
		return nil
	})
}

// serve opens the program's channel, now that whatever comes in by it stands behind the start in the journal.
func (a *agent) serve(ctx actor.Context) {
	a.phase = running
	a.run.connected, a.run.serving = true, true
	k, p := a.kernel, a.run.process
	caller := kernel.Caller{
		PID:  a.program.PID,
		Via:  "channel",
		Conn: "a-" + strconv.FormatInt(a.program.PID, 10) + "." + strconv.Itoa(a.runs),
	}
	self := ctx.Self()
	a.task(ctx, func() any {
		link, err := k.hosting.Connect(p)
		if err != nil {
			k.log.Debug("program did not speak", "pid", caller.PID, "error", err)
			_ = p.Conn().Close()
			return served{}
		}
		k.Serve(link, caller, func() {
			_ = link.Close()
			_ = p.Conn().Close()
			k.root.Send(self, served{})
		})
		return nil
	})
	ctx.Send(a.parent, settled{a.program.PID})
	a.ended(ctx)
}

// ended notes the end of the program, once nothing of it is left and all that it said has been heard. What a program says
// that was told to end may come too late: it may wait for the very answer that waits for its end.
func (a *agent) ended(ctx actor.Context) {
	r := a.run
	if a.phase == notingRun && r.exit != nil && a.kernel.refusing.Load() {
		ctx.Send(a.parent, ended{a.program.PID}) // its start may not be noted for long
	}
	if a.phase != running || r.exit == nil || r.serving && !a.stop.ordered && !a.stop.shutdown {
		return
	}
	a.noteEnd(ctx, a.end())
}

// stopping has the program ended. Where there is none, the agent goes.
func (a *agent) stopping(ctx actor.Context, m stop) {
	if m.ordered && !a.stop.ordered {
		a.stop.ordered, a.cause = true, m.cause
	}
	a.stop.shutdown = a.stop.shutdown || m.shutdown
	a.stop.hurry = a.stop.hurry || m.hurry
	// The notes still to come are part of what the operator wants, and may be written on a full disk. One that was refused
	// there is written again at once.
	a.cause.Urgent = a.cause.Urgent || m.cause.Urgent || m.shutdown
	if (a.phase == notingRun || a.phase == notingEnd) && a.timer != nil && a.timer.Stop() {
		a.write(ctx, a.note)
	}
	switch a.phase {
	case resting:
		a.leave(ctx)
	case notingRun, running:
		a.terminate(ctx)
		a.ended(ctx)
	}
}

// terminate takes down all that there is of the program.
func (a *agent) terminate(ctx actor.Context) {
	p := a.run.process
	if a.stop.hurry {
		p.Kill()
	}
	if a.run.asked {
		return
	}
	a.run.asked = true
	grace := a.kernel.hosting.Grace
	a.task(ctx, func() any {
		_ = p.Terminate(context.Background(), grace) // which ends by itself
		return nil
	})
}

// pause waits until the program may be started again.
func (a *agent) pause(ctx actor.Context) {
	a.phase, a.run = resting, nil
	if !a.held() {
		a.wake(ctx, a.rest)
	}
}

// held reports whether the program is not to be started in this life.
func (a *agent) held() bool { return a.from != nil && a.kernel.hosting.Hold }

// tickPoll is how often an agent in quarantine looks at the kernel's clock, which may be moved by hand.
const tickPoll = 100 * time.Millisecond

func (a *agent) awake(ctx actor.Context) {
	switch {
	case a.phase == notingRun, a.phase == notingEnd:
		a.write(ctx, a.note)
	case a.phase != resting:
	case a.kernel.clock.now() < a.until:
		a.wake(ctx, tickPoll)
	default:
		a.start(ctx)
	}
}

func (a *agent) wake(ctx actor.Context, after time.Duration) {
	self, root := ctx.Self(), a.kernel.root
	a.timer = time.AfterFunc(after, func() { root.Send(self, awake{}) })
}

func (a *agent) stopTimer() {
	if a.timer != nil {
		a.timer.Stop()
	}
}

// leave lets go of the process for good.
func (a *agent) leave(ctx actor.Context) {
	a.phase = goneForGood
	a.stopTimer()
	ctx.Send(a.parent, settled{a.program.PID})
	ctx.Send(a.parent, vanished{a.program.PID})
	a.finish(ctx)
}

// finish ends the actor once no more messages will come.
func (a *agent) finish(ctx actor.Context) {
	if a.dismissed && (a.run == nil || !a.run.serving) {
		ctx.Stop(ctx.Self())
	}
}
