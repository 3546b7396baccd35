// Package pace spaces the retries of many who wait for one thing.
package pace

import (
	"sync"
	"time"
)

// Pace lets one of all callers try at a time, after pauses that double from First to Last, so that the rate of tries does not grow
// with the number of callers. It is safe for concurrent use.
type Pace struct {
	First, Last time.Duration

	mu    sync.Mutex
	next  time.Time
	pause time.Duration
}

// Take returns 0 if the caller may try now, otherwise how long to wait before asking again.
func (p *Pace) Take(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if wait := p.next.Sub(now); wait > 0 {
		return wait
	}
	p.pause = min(max(2*p.pause, p.First), p.Last)
	p.next = now.Add(p.pause)
	return 0
}

// Reset ends the pauses: a try has succeeded.
func (p *Pace) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next, p.pause = time.Time{}, 0
}
