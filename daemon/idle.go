package daemon

import (
	"sync"
	"time"
)

// idle tells when nobody has been connected for a while. A connection that arrives at that very moment either is
// served before the end, or sees an end of input before any prologue and its client starts the next daemon.
type idle struct {
	limit time.Duration // 0: never
	over  chan struct{}

	mu    sync.Mutex
	conns int
	timer *time.Timer
}

func newIdle(limit time.Duration) *idle {
	i := &idle{limit: limit, over: make(chan struct{})}
	i.wait()
	return i
}

// expired is closed when the time is up.
func (i *idle) expired() <-chan struct{} { return i.over }

func (i *idle) enter() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.conns++
	if i.timer != nil {
		i.timer.Stop()
		i.timer = nil
	}
}

func (i *idle) leave() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.conns--; i.conns == 0 {
		i.wait()
	}
}

// wait starts the time anew.
func (i *idle) wait() {
	if i.limit == 0 {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(i.limit, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.timer == timer && timer != nil { // else somebody came while this was on its way
			i.timer = nil
			close(i.over)
		}
	})
	i.timer = timer
}
