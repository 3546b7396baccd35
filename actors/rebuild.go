package actors

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
)

// restoreAgain tells a domain that its goroutine has built the state of that epoch, or that it is time to try again.
type restoreAgain struct{ epoch uint64 }

// stalled makes every domain refuse calls until resume: the state of a registry cannot be built now.
type stalled struct{ epoch uint64 }

// restoreFailed tells the audit log that a registry could not be rebuilt.
type restoreFailed rebuilt

// Pauses between attempts to rebuild a state: at least the first, and this many times as long as the attempt took.
const (
	restorePause = time.Second
	restoreRest  = 10
)

// errRestoring is returned while the state is rebuilt.
var errRestoring = errors.New("the state is being rebuilt from the journal")

// rebuild rebuilds the state from the journal, which has lost entries that the state had applied.
func (d *domain) rebuild(ctx actor.Context, epoch uint64) {
	r := &d.rebuilding
	r.held, r.stalled, r.wanted, r.made = true, false, epoch, 0
	if r.retry != nil {
		r.retry.Stop()
	}
	if r.work == nil { // otherwise it starts again when that has finished
		d.restore(ctx)
	}
}

// restore starts a goroutine that builds the state and publishes it.
func (d *domain) restore(ctx actor.Context) {
	work := &restoring{epoch: d.rebuilding.wanted, begun: time.Now()}
	d.rebuilding.work, d.rebuilding.err = work, errRestoring
	self, root := ctx.Self(), d.kernel.root
	d.kernel.background(func() {
		err := d.makeState()
		work.failure.Store(&err)
		if work.abandoned.Load() {
			d.unsaved(err)
			return
		}
		root.Send(self, restoreAgain{work.epoch})
	})
}

// makeState runs on the goroutine. A panic is handled like other errors, and ends the kernel.
func (d *domain) makeState() (err error) {
	defer func() {
		if r := recover(); r != nil {
			d.log.Error("restore panicked", "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	if err := d.kernel.restore(d.name, d.state); err != nil {
		return err
	}
	d.publish()
	return nil
}

// unsaved ends the kernel without saving if there is no state.
func (d *domain) unsaved(err error) {
	if err != nil {
		d.kernel.requestShutdown(fmt.Errorf("rebuild domain %s: %w", d.name, err))
	}
}

// abandon is called when the domain ends. A goroutine that still runs reports its error itself.
func (d *domain) abandon() {
	r := &d.rebuilding
	if r.retry != nil {
		r.retry.Stop()
	}
	if r.work == nil {
		d.unsaved(r.err)
		return
	}
	r.work.abandoned.Store(true)
	if err := r.work.failure.Load(); err != nil {
		d.unsaved(*err)
	}
}

// restored handles the goroutine's result. If the system refuses to open or read files, which may be temporary, calls are
// refused and the rebuild is retried. Any other error ends the kernel.
func (d *domain) restored(ctx actor.Context, work *restoring) {
	r := &d.rebuilding
	r.work = nil
	if work.epoch != r.wanted { // the journal has lost more since
		d.restore(ctx)
		return
	}
	err := *work.failure.Load()
	if _, system := errors.AsType[syscall.Errno](err); system {
		if r.failed == nil {
			d.log.Error("state cannot be rebuilt from the journal: calls are refused until it can", "error", err)
		}
		r.err, r.failed = err, err
		self, root, again := ctx.Self(), d.kernel.root, restoreAgain{r.wanted}
		r.retry = time.AfterFunc(max(restorePause, restoreRest*time.Since(work.begun)), func() { root.Send(self, again) })
		d.stall(ctx, r.wanted)
		ctx.Send(d.kernel.audit, restoreFailed{d.name, r.wanted})
		return
	}
	r.err, r.failed = nil, nil
	if err != nil && work.replaces {
		r.err = err
		d.unsaved(err)
		d.stall(ctx, r.wanted) // decisions made here have the journal's epoch
		return
	}
	if err != nil {
		d.unsaved(err)
		// made stays 0: the audit log continues to refuse decisions made here.
	} else {
		r.made = r.wanted
	}
	ctx.Send(d.kernel.audit, rebuilt{d.name, r.wanted})
	if r.resumed == r.wanted {
		d.resume(ctx, r.wanted)
	}
}

// restoreAgain takes over the state if its goroutine has finished. Otherwise it tries again, unless another rebuild has
// started since.
func (d *domain) restoreAgain(ctx actor.Context, epoch uint64) {
	switch r := &d.rebuilding; {
	case r.work != nil:
		if r.work.epoch == epoch && r.work.failure.Load() != nil {
			d.restored(ctx, r.work)
		}
	case r.err != nil && r.wanted == epoch:
		d.restore(ctx)
	}
}

// stall refuses calls until resume.
func (d *domain) stall(ctx actor.Context, epoch uint64) {
	if r := &d.rebuilding; r.held && r.wanted == epoch {
		r.stalled = true
		if late := d.late; late != nil {
			d.late = nil
			d.stepDone(ctx, *late)
		}
	}
}

// resume runs the queued calls.
func (d *domain) resume(ctx actor.Context, epoch uint64) {
	r := &d.rebuilding
	r.resumed = epoch
	if r.wanted != epoch || r.err != nil {
		return // another rebuild follows, or this one is retried
	}
	r.held, r.stalled = false, false
	if r.made == epoch {
		d.epoch = epoch
	}
	d.queue = append(d.queue, r.following...)
	r.following = nil
	d.answered(kernel.Resumed) // the pause whose end they wait for may be lost
	if late := d.late; late != nil {
		d.late = nil
		d.stepDone(ctx, *late)
	}
}

// replacement makes a domain queue its calls while work runs on a goroutine.
type replacement struct {
	work  func() (intact bool, err error)
	done  chan error  // buffered: one answer
	taken atomic.Bool // by the domain, or by a caller that no longer waits
}

// replace starts the work. A rebuild that is requested meanwhile follows it.
func (d *domain) replace(ctx actor.Context, m *replacement) {
	if !m.taken.CompareAndSwap(false, true) {
		return
	}
	r := &d.rebuilding
	if r.held || r.work != nil {
		m.done <- errNoState()
		return
	}
	work := &restoring{epoch: d.epoch, begun: time.Now(), replaces: true}
	r.held, r.stalled, r.wanted, r.work, r.err = true, false, d.epoch, work, errRestoring
	self, root := ctx.Self(), d.kernel.root
	d.kernel.background(func() {
		lost, err := d.kernel.tryWork(m.work)
		if lost == nil {
			d.publish()
		}
		work.failure.Store(&lost)
		m.done <- err
		if work.abandoned.Load() {
			d.unsaved(lost)
			return
		}
		root.Send(self, restoreAgain{work.epoch})
	})
}

// snapshot answers takeSnapshot.
func (d *domain) snapshot(ctx actor.Context, epoch uint64) {
	if d.rebuilding.held || epoch != d.epoch {
		return // a rebuild runs, and the round is cancelled
	}
	ctx.Send(d.kernel.audit, snapshotOf{d.name, epoch, d.state.Snapshot()})
}

// stopped drops all parked calls: their connections have ended.
func (d *domain) stopped(ctx actor.Context) {
	for pid := range d.parked {
		d.take(pid, func(*parked) bool { return true })
	}
	d.watching = nil
	d.abandon() // the state must not be saved if it could not be built
	for name := range d.watched {
		ctx.Unwatch(d.kernel.domains[name])
	}
}

// tryWork returns the work's error, and as lost too, if there is no usable state. A panic is an error.
func (k *Kernel) tryWork(work func() (intact bool, err error)) (lost, err error) {
	intact := false
	func() {
		defer func() {
			if r := recover(); r != nil {
				k.log.Error("replacing a state panicked", "panic", r, "stack", string(debug.Stack()))
				err = fmt.Errorf("panic: %v", r)
			}
		}()
		intact, err = work()
	}()
	if !intact {
		lost = errors.New("replace state: " + fmt.Sprint(err)) // not the system's error, after which the domain would try again
	}
	return lost, err
}
