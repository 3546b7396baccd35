package actors

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// replacement makes a domain queue its calls while work runs on a goroutine.
type replacement struct {
	work  func() (intact bool, err error)
	done  chan error  // buffered: one answer
	taken atomic.Bool // by the domain, or by a caller that no longer waits
}

// Replace runs work while a domain executes no call: its calls wait, and all that it has done is written by the next
// Recorded. work may replace the domain's state. intact says, whatever err is, that the state is what the journal results
// in; otherwise the kernel ends without saving snapshots. With the name "", work runs while all domains continue.
func (k *Kernel) Replace(name schema.Domain, work func() (intact bool, err error)) error {
	pid, ok := k.domains[name]
	if !ok {
		lost, err := k.tryWork(work)
		if lost != nil {
			k.requestShutdown(lost)
		}
		return err
	}
	m := &replacement{work: work, done: make(chan error, 1)}
	k.root.Send(pid, m)
	select {
	case err := <-m.done:
		return err
	case <-k.stopping:
		if m.taken.CompareAndSwap(false, true) {
			return kernel.ErrStopping
		}
		return <-m.done
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

// PauseSnapshots waits until no snapshot is being saved. None is started until resume is called.
func (k *Kernel) PauseSnapshots(ctx context.Context) (resume func(), err error) {
	paused := make(chan struct{})
	resume = func() { k.root.Send(k.audit, resumeSnapshots{}) }
	k.root.Send(k.audit, pauseSnapshots{paused})
	select {
	case <-paused:
		return resume, nil
	case <-ctx.Done():
		resume()
		return nil, context.Cause(ctx)
	}
}

// pauseSnapshots requests that no snapshot is saved; paused is closed when none is.
type pauseSnapshots struct{ paused chan<- struct{} }

// resumeSnapshots ends a pauseSnapshots.
type resumeSnapshots struct{}

// pauseSnapshots waits for the end of the running round.
func (a *audit) pauseSnapshots(m pauseSnapshots) {
	a.snapshots.pauses++
	a.snapshots.pausing = append(a.snapshots.pausing, m.paused)
	a.snapshots.tellPaused()
}

func (s *snapshotting) tellPaused() {
	if s.running {
		return
	}
	for _, paused := range s.pausing {
		close(paused)
	}
	s.pausing = nil
}

// Vouch journals that a line of the journal is rewritten, and returns the entry, which is on disk. lost reports whether it
// may be on disk despite an error.
func (k *Kernel) Vouch(in *schema.AuditRedactedInput) (seq uint64, lost bool, err error) {
	answer, err := k.Do(context.Background(), kernel.Own{Caller: kernel.Caller{Kernel: true}, Request: schema.AuditRedacted.With(in)})
	return answer.Seq, errors.Is(err, fault.JournalLost), err
}
