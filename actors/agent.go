package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// agent is the actor of a process with a program: it has the program started, journals that it runs and how it ended, and
// starts it again or lets it go. Whatever takes time happens on goroutines that report back.
type agent struct {
	kernel  *Kernel
	parent  *actor.PID
	program kernel.Program
	cause   kernel.Call     // what its notes name as theirs
	from    *process.Hosted // of a process of the kernel's last life: how it was left

	phase     phase
	run       *run // the program, from its start until its end is noted
	runs      int  // starts in this life
	stop      stop
	deaf      bool // nothing can be journaled any more
	dismissed bool

	note schema.Request // under way

	rest  time.Duration // pause before the next start
	until int64         // tick at which the quarantine before it is over
	timer *time.Timer
}

// phase is what an agent waits for.
type phase int

const (
	starting    phase = iota // the program
	notingRun                // that its start is on disk
	running                  // its end
	notingEnd                // that its end is on disk
	resting                  // the pause before the next start
	goneForGood              // its goroutines
)

// run is one run of a program.
type run struct {
	process   *host.Process
	connected bool // its channel was served
	serving   bool // and still is
	asked     bool // it was told to end
	exit      *host.Exit
}

// What agents are told.
type (
	stop struct { // has the program ended
		cause    kernel.Call
		ordered  bool // the process has ended
		shutdown bool // the kernel ends
		hurry    bool // without grace
	}
	started struct { // the start is over
		process *host.Process
		err     error
	}
	exited struct{ exit host.Exit } // nothing of the program is left
	served struct{}                 // its channel is over
	noted  struct {                 // a note is on disk, or could not be made
		tick int64
		err  *fault.Fault
	}
	halt      struct{ on bool } // its program is to stop where it is, or to go on
	retimed   struct{}          // wall_seconds were granted, to somebody
	dismissed struct{}          // no more messages will come
	deafened  struct{}          // nothing can be journaled any more
	awake     struct{}          // the timer
)

// Receive takes what the program and the journal report.
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
	case retimed:
		a.limit()
	case dismissed:
		a.dismissed = true
		a.finish(ctx)
	case deafened:
		a.deaf = true
		if a.phase == notingRun || a.phase == notingEnd {
			a.noted(ctx, noted{tick: a.kernel.clock.now()})
		}
	case awake:
		a.awake(ctx)
	case *actor.Stopped:
		a.stopTimer()
		if r := a.run; r != nil && r.process != nil { // it panicked; else nothing is left to kill
			r.process.Kill()
		}
	}
}
