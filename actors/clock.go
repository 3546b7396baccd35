package actors

import (
	"sync"
	"sync/atomic"
	"time"
)

// clock is the kernel's tick (PROTOCOL 6): it starts at the last tick of the journal, and only grows. It has no timer:
// advance counts the ticks that have passed.
type clock struct {
	tick     atomic.Int64
	interval time.Duration // of a tick; 0: only commands advance it

	mu   sync.Mutex
	last time.Time // when the last counted tick passed
}

func newClock(tick int64, interval time.Duration) *clock {
	c := &clock{interval: interval, last: time.Now()}
	c.tick.Store(tick)
	return c
}

// now returns the tick at the last turn of the loop.
func (c *clock) now() int64 { return c.tick.Load() }

// advance counts the ticks that have passed.
func (c *clock) advance() {
	if c.interval == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if passed := time.Since(c.last) / c.interval; passed > 0 {
		c.last = c.last.Add(passed * c.interval)
		c.tick.Add(int64(passed))
	}
}

// reach advances the clock to tick, if that is later.
func (c *clock) reach(tick int64) {
	for {
		at := c.tick.Load()
		if tick <= at || c.tick.CompareAndSwap(at, tick) {
			return
		}
	}
}
