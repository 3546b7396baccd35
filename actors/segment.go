package actors

import (
	"context"
	"errors"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/record"
)

// EndSegment makes the journal start its next segment: the entries so far are then in complete ones.
func (k *Kernel) EndSegment(ctx context.Context) error {
	ended := make(chan error, 1)
	k.root.Send(k.audit, endSegment{ended})
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// endSegment ends the segment for all callers that wait for it, when no sync runs.
func (a *audit) endSegment() {
	if len(a.endings) == 0 || a.syncing {
		return
	}
	waiting := a.endings
	a.endings = nil
	tell := func(err error) {
		for _, ended := range waiting {
			ended <- err
		}
	}
	if a.stopped {
		tell(record.Unavailable())
		return
	}
	a.syncing, a.rotating = true, true
	a.syncAtRest(func() (uint64, error) {
		through, err := a.journal.EndSegment()
		tell(err)
		if !errors.Is(err, journal.ErrStopped) {
			err = nil // the old segment stays in use
		}
		return through, err
	})
}
