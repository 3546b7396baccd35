package store

import (
	"context"
	"time"

	"github.com/promptware-os/pwos/journal"
)

// FollowerOptions say what a Follower follows.
type FollowerOptions struct {
	FS  journal.FS // nil means journal.OSFS
	Dir string     // the journal's directory

	// Limit is (*journal.Log).Synced: no entry past it is indexed. nil means whatever the files hold.
	Limit func() uint64

	// Await is (*journal.Log).AwaitSynced, which the Follower waits in until there is a whole run to index. nil means that it looks
	// every Poll.
	Await func(ctx context.Context, seq uint64)

	// Poll is how often the Follower looks for more where it has to; 0 means every second.
	Poll time.Duration

	// Now and Sleep are the clock; nil means the real one. Sleep returns early when ctx is done.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration)

	// Trouble is told of what the Follower met and went on after: a commit that failed and is tried again, an index that
	// was dropped. It is called on the goroutine of Run. nil means that nobody is told.
	Trouble func(error)
}

func (o FollowerOptions) withDefaults() FollowerOptions {
	if o.Limit == nil {
		o.Limit = func() uint64 { return OpenEnd }
	}
	if o.Poll <= 0 {
		o.Poll = time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Trouble == nil {
		o.Trouble = func(error) {}
	}
	return o
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
