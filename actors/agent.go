package actors

import (
	"context"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema"
)

// agent is the actor of a process with a program: it starts the program, journals its start and its end, and then restarts
// it or ends. Slow work runs on goroutines that report back.
type agent struct {
	kernel  *Kernel
	parent  *actor.PID
	program kernel.Program
	cause   kernel.Cause    // of its notes
	from    *process.Hosted // state of a process of the previous run of the kernel

	phase     phase
	run       *run // from the start of the program until its end is on disk
	runs      int  // number of starts since the kernel started
	stop      stop
	dismissed bool
	noting
	interval
}

// noting is how an agent journals what its program does.
type noting struct {
	note         schema.Request // being written
	unrecordable bool           // nothing can be journaled any more
}

// interval is the pause before the next start.
type interval struct {
	rest  time.Duration
	until int64 // tick at which its quarantine ends
	timer *time.Timer
}

// phase is what an agent waits for.
type phase int

const (
	starting  phase = iota // the program
	notingRun              // that its start is on disk
	running                // its end
	notingEnd              // that its end is on disk
	resting                // the pause before the next start
	leaving                // the end of its goroutines
)

// run is one run of a program.
type run struct {
	process   *host.Process
	connected bool // its channel was served
	serving   bool // and still is
	asked     bool // it was told to end
	expired   bool // because another host may lead the kernel
	exit      *host.Exit
}

// Messages to agents.
type (
	stop struct { // end the program
		cause    kernel.Cause
		ordered  bool // the process has ended
		shutdown bool // the kernel ends
		hurry    bool // without grace
	}
	started struct { // the start succeeded or failed
		process *host.Process
		err     error
	}
	exited        struct{ exit host.Exit } // no process of the program is left
	served        struct{}                 // its channel has closed
	halt          struct{ on bool }        // pause the program, or let it continue
	dismissed     struct{}                 // no more messages will come
	journalFailed struct{}                 // nothing can be journaled any more
	awake         struct{}                 // the timer
)

// Receive handles what the program and the journal report.
func (a *agent) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		a.begin(ctx)
	case started:
		a.started(ctx, m)
	case noted:
		a.noted(ctx, m)
	case exited:
		a.run.exit = &m.exit
		a.ended(ctx)
	case served:
		a.run.serving = false
		a.ended(ctx)
		a.finish(ctx)
	case stop:
		a.stopping(ctx, m)
	case halt:
		a.halt(ctx, m.on)
	case expired:
		a.expire(ctx, m.grace)
	case retimed:
		a.limit()
	case dismissed:
		a.dismissed = true
		a.finish(ctx)
	case journalFailed:
		a.unrecordable = true
		if a.phase == notingRun || a.phase == notingEnd {
			a.noted(ctx, noted{tick: a.kernel.clock.now()})
		}
	case awake:
		a.awake(ctx)
	case *actor.Stopped:
		a.stopTimer()
		if r := a.run; r != nil && r.process != nil { // it panicked; otherwise no process is left to kill
			r.process.Kill()
		}
	}
}

// begin continues from the state of the previous run of the kernel, or starts the program.
func (a *agent) begin(ctx actor.Context) {
	switch h := a.from; {
	case h == nil:
		a.start(ctx)
	case h.Ended(), h.Unsettled():
		a.noteEnd(ctx, a.unknownEnd(h))
	default:
		if a.until = h.Blocked; h.Blocked >= heldTicks {
			a.until = 0 // a restore has blocked it until now
		}
		a.pause(ctx)
	}
}

// heldTicks is how long a program that a restore holds must wait. No clock reaches it.
const heldTicks = 1 << 52

// task runs work on a goroutine, which sends its report to the agent.
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

// started journals that the program runs. If it must already stop, it is terminated instead.
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
		exit, _ := p.Wait(context.Background()) // it has ended, so this does not wait
		// Another process may hold an end of its channel, which must neither speak for the program nor delay its end. If
		// this fails, the channel is not served yet.
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
	if a.kernel.unled.Load() {
		a.expire(ctx, 0)
	}
	a.phase = notingRun
	again := a.runs > 1 || a.from != nil && (a.from.Begun || a.from.Ran())
	a.write(ctx, noteStart(a.program.PID, p, again))
}

// limit sets the deadline of wall_seconds, of its budget or an ancestor's.
func (a *agent) limit() {
	if a.run != nil && a.run.process != nil {
		a.run.process.EndAt(a.kernel.budgets.Deadline(a.program.PID))
	}
}

// expire ends the program, because another host may run it soon. Its restart policy applies when this host leads again.
func (a *agent) expire(ctx actor.Context, grace time.Duration) {
	r := a.run
	if r == nil || r.process == nil || r.asked {
		return
	}
	r.asked, r.expired = true, true
	a.task(ctx, func() any {
		_ = r.process.Terminate(context.Background(), grace) // the program ends in any case
		return nil
	})
}

// halt pauses the program or lets it continue. Finding its processes takes time, so a goroutine does it. It reads the
// latest request before it acts, so that the last one takes effect.
func (a *agent) halt(ctx actor.Context, on bool) {
	parent, root, report := a.parent, a.kernel.root, halted{a.program.PID}
	if a.run == nil || a.run.process == nil {
		ctx.Send(parent, report) // it checks that when it starts
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

// serve opens the program's channel. The start is on disk, so the entries of the program's calls follow it.
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
			k.log.Debug("program sent nothing", "pid", caller.PID, "error", err)
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
	ctx.Send(a.parent, startDone{a.program.PID})
	a.ended(ctx)
}

// ended journals the end of the program, when none of its processes is left and its frames are handled. If it was told to
// end, its frames are not waited for: it may wait for an answer that itself waits for its end.
func (a *agent) ended(ctx actor.Context) {
	r := a.run
	if a.phase == notingRun && r.exit != nil && a.kernel.refusing.Load() {
		ctx.Send(a.parent, ended{a.program.PID}) // the entry of its start may be written much later
	}
	if a.phase != running || r.exit == nil || r.serving && !a.stop.ordered && !a.stop.shutdown {
		return
	}
	a.noteEnd(ctx, a.end())
}

// stopping ends the program. If none runs, the agent ends.
func (a *agent) stopping(ctx actor.Context, m stop) {
	if m.ordered && !a.stop.ordered {
		a.stop.ordered, a.cause = true, m.cause
	}
	a.stop.shutdown = a.stop.shutdown || m.shutdown
	a.stop.hurry = a.stop.hurry || m.hurry
	// The remaining notes are part of the operator's command, and may use the journal's reserve. A refused note is written
	// again at once.
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

// terminate ends all processes of the program.
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
		_ = p.Terminate(context.Background(), grace) // the program ends in any case
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

// held reports whether a restore blocks the start of the program.
func (a *agent) held() bool { return a.from != nil && a.kernel.hosting.Hold }

// tickPoll is how often an agent in quarantine checks the kernel's clock, which commands may advance.
const tickPoll = 100 * time.Millisecond

func (a *agent) awake(ctx actor.Context) {
	switch {
	case a.phase == notingRun, a.phase == notingEnd:
		a.write(ctx, a.note)
	case a.phase != resting:
	case a.kernel.clock.now() < a.until, a.kernel.unled.Load():
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

// leave ends the agent.
func (a *agent) leave(ctx actor.Context) {
	a.phase = leaving
	a.stopTimer()
	ctx.Send(a.parent, startDone{a.program.PID})
	ctx.Send(a.parent, endedForGood{a.program.PID})
	a.finish(ctx)
}

// finish stops the actor when no further messages can arrive.
func (a *agent) finish(ctx actor.Context) {
	if a.dismissed && (a.run == nil || !a.run.serving) {
		ctx.Stop(ctx.Self())
	}
}

// agents is the actor that carries out effects on programs. It has an actor for each process with a program, and answers a
// call when its effects are done.
type agents struct {
	kernel     *Kernel
	alive      map[int64]*actor.PID
	awaitStart map[int64][]*pending // calls that wait for the start of a program
	awaitEnd   map[int64][]*pending // calls that wait for the end of a program
	// awaitPause are calls that wait until a program is paused or continued.
	awaitPause   map[int64][]*pending
	over         map[int64]bool // of those alive: the program has ended, and that is on disk
	ends         int            // number of agents that have ended
	unrecordable bool           // nothing can be journaled any more
	ending       bool
	ended        chan struct{} // closed when all programs have ended
}

// pending is a batch that waits for its effects.
type pending struct {
	batch *frames
	left  int
}

// endAll ends all programs; hurry: without grace.
type endAll struct{ hurry bool }

// Reports of agents.
type (
	halted       struct{ pid int64 } // the program is paused, or continued, as last asked
	startDone    struct{ pid int64 } // the first start has succeeded or failed
	ended        struct{ pid int64 } // the program has ended, which cannot be journaled yet
	endedForGood struct{ pid int64 } // the program has ended and is not restarted
)

// resumed is an agent of the previous run of the kernel.
type resumed struct{ process.Hosted }
