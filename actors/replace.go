package actors

import (
	"context"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

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
