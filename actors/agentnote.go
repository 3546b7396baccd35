package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Reasons of an end that the host does not report (PROTOCOL 5).
const (
	reasonNotStarted = "not started"
	reasonShutdown   = "shutdown"
	reasonLease      = "lease lost"
)

// write journals a step; noted reports that it is on disk. While the journal cannot be written, the step is retried, and
// calls that wait for the program's end are answered without it.
func (a *agent) write(ctx actor.Context, step schema.Request) {
	a.note = step
	if a.unrecordable {
		a.noted(ctx, noted{tick: a.kernel.clock.now()})
		return
	}
	if a.kernel.refusing.Load() && !a.cause.Urgent && !a.stop.shutdown {
		if wait := a.kernel.retries.Take(time.Now()); wait > 0 {
			a.postpone(ctx, wait)
			return
		}
	}
	s, err := a.kernel.step(&a.cause, step)
	if err != nil {
		a.noted(ctx, noted{err: err})
		return
	}
	s.note = ctx.Self()
	a.cause.ID = s.calls[0].Message.Meta.ID // this note is the cause of the next one
	a.kernel.send(s)
}

// noted continues when a note is on disk. A note that a full disk refuses is written again, unless the kernel ends: the
// next start finds that it is missing.
func (a *agent) noted(ctx actor.Context, m noted) {
	if m.err != nil && m.err.Kind == fault.Unavailable && !a.stop.shutdown && !a.unrecordable {
		a.postpone(ctx, firstRetry)
		return
	}
	switch {
	case a.phase == notingRun && m.err != nil: // the process has ended meanwhile
		a.phase, a.stop.ordered = running, true
		a.terminate(ctx)
		a.ended(ctx)
	case a.phase == notingRun:
		a.serve(ctx)
	case a.phase == notingEnd:
		if m.err != nil {
			a.kernel.log.Error("end of a program not journaled", "pid", a.program.PID, "error", m.err)
		}
		a.afterEnd(ctx, m.tick)
	}
}

// postpone tries the note again later.
func (a *agent) postpone(ctx actor.Context, wait time.Duration) {
	if a.phase == notingEnd || a.run.exit != nil {
		ctx.Send(a.parent, ended{a.program.PID})
	}
	a.wake(ctx, wait)
}

func (a *agent) noteEnd(ctx actor.Context, in *programEnd) {
	if r := a.run; r != nil && r.process != nil && !r.connected {
		_ = r.process.Conn().Close()
	}
	a.phase = notingEnd
	a.write(ctx, noteEnd(in))
}

// afterEnd starts the program again after its pause, or ends the agent.
func (a *agent) afterEnd(ctx actor.Context, tick int64) {
	in := a.note.Input.(*programEnd)
	if !in.Restart || a.stop.ordered || a.stop.shutdown {
		a.leave(ctx)
		return
	}
	ctx.Send(a.parent, startDone{a.program.PID})
	a.program.Faults, a.program.Quick = in.Faults, in.Quick
	a.until = tick + in.BlockedTicks
	a.pause(ctx)
}

// end describes how a run of the program ended.
func (a *agent) end() *programEnd {
	exit := a.run.exit
	in := a.blank(string(exit.Reason), exit.String())
	if exit.Signal != 0 {
		signal := int64(exit.Signal)
		in.Signal = &signal
	} else {
		code := int64(exit.Code)
		in.Code = &code
	}
	switch {
	case a.stop.ordered:
	case a.stop.shutdown && exit.Reason == host.ReasonOrdered:
		in.Reason, in.Restart = reasonShutdown, a.restart() == host.RestartAlways
	case a.run.expired && exit.Reason == host.ReasonOrdered:
		in.Reason, in.Restart = reasonLease, a.restart() != host.RestartNever
	default:
		a.decide(in, exit.Cause(), exit.Ran)
	}
	return in
}

// notStarted describes a run that could not be started. The first start is not retried, since its caller gets the error.
func (a *agent) notStarted(err error) *programEnd {
	in := a.blank(reasonNotStarted, err.Error())
	if a.stop.ordered || a.runs == 1 && a.from == nil {
		return in
	}
	a.decide(in, host.CauseFailed, 0)
	return in
}

// unknownEnd describes the end of a program's run in the previous run of the kernel that no kernel saw. It does not count
// as a fault of the program.
func (a *agent) unknownEnd(h *process.Hosted) *programEnd {
	in := a.blank(process.Unknown, "the kernel was not running")
	in.Restart = !h.Ended() && a.restart() != host.RestartNever
	if in.Restart && a.held() {
		in.BlockedTicks = heldTicks
	}
	return in
}

func (a *agent) blank(reason, why string) *programEnd {
	return &programEnd{PID: a.program.PID, Reason: reason, Why: &why, Faults: a.program.Faults, Quick: a.program.Quick}
}

// decide applies the table of faults.
func (a *agent) decide(in *programEnd, cause host.Cause, ran time.Duration) {
	p := a.program
	record, d := a.kernel.hosting.Policy(a.restart()).Decide(
		host.Record{Faults: int(p.Faults), Quick: int(p.Quick), Restarts: int(p.Restarts)}, cause, ran)
	in.Faults, in.Quick, in.Restart = int64(record.Faults), int64(record.Quick), d.Restart
	if end := a.kernel.budgets.Deadline(p.PID); d.Restart && !end.IsZero() && !time.Now().Before(end) {
		in.Restart = false
	}
	if in.Restart {
		in.BlockedTicks = d.BlockedTicks
	}
	if d.Fault != host.FaultNone {
		fault, why := string(d.Fault), *in.Why+"; "+d.Why
		in.Fault, in.Why = &fault, &why
	}
	a.rest = d.Delay
}

// restart is the policy that the program was spawned with; the schema allows no other.
func (a *agent) restart() host.Restart {
	r, err := host.ParseRestart(text(a.program.Spec.Restart))
	if err != nil {
		return host.RestartNever
	}
	return r
}
