package actors

import (
	"sync"
	"time"
)

// Pauses between tries to write what has to be written once the journal can be again.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// probes spaces the retries of all writes that no client waits for. Each that fails has every state made
// anew, so their number must not grow with that of the tryers.
type probes struct {
	mu    sync.Mutex
	next  time.Time
	pause time.Duration
}

// take returns 0 where the caller may try now, else how long it has to wait before it asks again.
func (p *probes) take(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if wait := p.next.Sub(now); wait > 0 {
		return wait
	}
	p.pause = min(max(2*p.pause, firstRetry), lastRetry)
	p.next = now.Add(p.pause)
	return 0
}

// over has the next failure tried again soon: the journal can be written.
func (p *probes) over() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next, p.pause = time.Time{}, 0
}
