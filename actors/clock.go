package actors

import (
	"sync/atomic"
	"time"
)

// clock is the kernel's tick (PROTOCOL 6): it starts where the journal ended, and only grows.
type clock struct{ tick atomic.Int64 }

func (c *clock) now() int64 { return c.tick.Load() }

// reach moves the clock on to tick, if it is not there yet.
func (c *clock) reach(tick int64) {
	for {
		at := c.tick.Load()
		if tick <= at || c.tick.CompareAndSwap(at, tick) {
			return
		}
	}
}

// run lets a tick pass every interval, until stop is closed.
func (c *clock) run(interval time.Duration, stop <-chan struct{}) {
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			c.tick.Add(1)
		case <-stop:
			return
		}
	}
}
