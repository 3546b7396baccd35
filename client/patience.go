package client

import (
	"context"
	"sync"
	"time"
)

// patience is a context that ends when a time has run out, which can be stopped: whoever types a passphrase or touches a
// key takes as long as it takes, and that says nothing about the kernel.
type patience struct {
	context.Context
	end context.CancelCauseFunc

	mu    sync.Mutex
	timer *time.Timer
	since time.Time     // when the timer was started
	left  time.Duration // then
}

func newPatience(ctx context.Context, limit time.Duration, spent error) *patience {
	p := &patience{since: time.Now(), left: limit}
	p.Context, p.end = context.WithCancelCause(ctx)
	deadline, bounded := ctx.Deadline()
	p.timer = time.AfterFunc(limit, func() {
		if bounded && !deadline.After(time.Now()) {
			return // ctx ends by itself, and says why
		}
		p.end(spent)
	})
	return p
}

// rest stops the clock until resume is called.
func (p *patience) rest() (resume func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer.Stop() {
		p.left -= time.Since(p.since)
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.since = time.Now()
		p.timer.Reset(max(p.left, 0))
	}
}

// done gives back what the clock holds.
func (p *patience) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer.Stop()
	p.end(context.Canceled)
}
