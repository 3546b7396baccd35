package actors

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// rebuilding is what a domain knows of making its state anew, after the journal has lost what the state had applied.
type rebuilding struct {
	held    bool   // calls wait: the state is not made yet, or the registries' are not
	stalled bool   // calls are refused instead, since that takes long
	wanted  uint64 // the life of the journal that the state is to be made of
	made    uint64 // the one that it was made of; 0 where that failed
	resumed uint64 // the one for which the registries' are made

	err   error // why it failed, for a reason that may pass; nil: it did not
	retry *time.Timer

	following []*batch // questions of subscriptions that came while calls were refused
}

// waits reports whether calls are to be kept for later.
func (r *rebuilding) waits() bool { return r.held && !r.stalled }

// restoreAgain has a domain try again to make its state of that life of the journal.
type restoreAgain struct{ epoch uint64 }

// stalled has every domain refuse calls until resume: the state of a registry cannot be made for now.
type stalled struct{ epoch uint64 }

// restoreFailed tells the audit log so.
type restoreFailed rebuilt

// Pauses between attempts to make a state: at least the first, and as many times as long as the attempt took.
const (
	restorePause = time.Second
	restoreRest  = 10
)

// rebuild makes the state anew from the journal, which has lost what the state had applied.
func (d *domain) rebuild(ctx actor.Context, epoch uint64) {
	r := &d.rebuilding
	r.held, r.stalled, r.wanted, r.made = true, false, epoch, 0
	d.restore(ctx)
}

// restore makes the state of what the journal says. Where the system refuses to open or read files, which may pass, calls
// are refused and it is tried again. Any other failure ends the kernel.
func (d *domain) restore(ctx actor.Context) {
	r := &d.rebuilding
	begun := time.Now()
	err := d.kernel.restore(d.name, d.state)
	if _, system := errors.AsType[syscall.Errno](err); system {
		if r.err == nil {
			d.log.Error("state cannot be made of the journal: calls are refused until it can", "error", err)
		}
		r.err = err
		self, root, again := ctx.Self(), d.kernel.root, restoreAgain{r.wanted}
		r.retry = time.AfterFunc(max(restorePause, restoreRest*time.Since(begun)), func() { root.Send(self, again) })
		d.stall(ctx, r.wanted)
		ctx.Send(d.kernel.audit, restoreFailed{d.name, r.wanted})
		return
	}
	r.err = nil
	if err != nil {
		d.kernel.requestShutdown(fmt.Errorf("rebuild domain %s: %w", d.name, err))
		// made stays 0: the audit log goes on to refuse what is decided here.
	} else {
		r.made = r.wanted
		d.publish()
	}
	ctx.Send(d.kernel.audit, rebuilt{d.name, r.wanted})
	if r.resumed == r.wanted {
		d.resume(ctx, r.wanted)
	}
}

// restoreAgain tries again, unless another rebuild has begun since.
func (d *domain) restoreAgain(ctx actor.Context, epoch uint64) {
	if d.rebuilding.err != nil && d.rebuilding.wanted == epoch {
		d.restore(ctx)
	}
}

// stall has calls refused until resume.
func (d *domain) stall(ctx actor.Context, epoch uint64) {
	if r := &d.rebuilding; r.held && r.wanted == epoch {
		r.stalled = true
		if late := d.late; late != nil {
			d.late = nil
			d.stepDone(ctx, *late)
		}
	}
}

// resume goes on with what came in since.
func (d *domain) resume(ctx actor.Context, epoch uint64) {
	r := &d.rebuilding
	r.resumed = epoch
	if r.wanted != epoch || r.err != nil {
		return // there is another rebuild after this one, or it is tried again
	}
	r.held, r.stalled = false, false
	if r.made == epoch {
		d.epoch = epoch
	}
	d.queue = append(d.queue, r.following...)
	r.following = nil
	if late := d.late; late != nil {
		d.late = nil
		d.stepDone(ctx, *late)
	}
}

// stepDone goes on with the saga whose step is done, once the domain may.
func (d *domain) stepDone(ctx actor.Context, m stepDone) {
	switch {
	case m.saga != d.busy: // it has failed meanwhile
	case d.rebuilding.waits():
		d.late = &m
	default:
		d.step(ctx, m.err)
	}
}
