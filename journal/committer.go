package journal

import "sync"

// A Committer is group commit: it runs at most one fsync at a time on a goroutine of its own, and all that is flushed
// and requested meanwhile shares the next one.
type Committer struct {
	log  *Log
	done func(through uint64, err error)

	wake  chan struct{} // capacity 1: a request that stands for all since the last fsync began
	check chan struct{} // capacity 1, likewise for checkpoints
	quit  chan struct{}
	once  sync.Once
	wg    sync.WaitGroup
}

// NewCommitter starts a committer on log. After each fsync it calls done with what Log.Sync returned: entries up to and
// including through are durable, and with err, which is ErrStopped, none after it ever will be in this Log. done runs on
// the committer's goroutine, so the next fsync waits for it; it must not call Close.
func NewCommitter(log *Log, done func(through uint64, err error)) *Committer {
	c := &Committer{
		log: log, done: done,
		wake: make(chan struct{}, 1), check: make(chan struct{}, 1), quit: make(chan struct{}),
	}
	c.wg.Add(2)
	go c.syncs()
	go c.checkpoints()
	return c
}

// Request asks that what was flushed before the call be made durable. It never blocks. Each request is followed by a
// call of done that covers it; many requests may share one. After Close it does nothing.
func (c *Committer) Request() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Close serves a request that is outstanding, and returns when both goroutines have ended. The Log stays open.
func (c *Committer) Close() {
	c.once.Do(func() { close(c.quit) })
	c.wg.Wait()
}

func (c *Committer) syncs() {
	defer c.wg.Done()
	defer close(c.check)
	for {
		select {
		case <-c.wake:
			c.commit()
		case <-c.quit:
			select {
			case <-c.wake:
				c.commit()
			default:
			}
			return
		}
	}
}

func (c *Committer) commit() {
	c.done(c.log.Sync())
	if !c.log.CheckpointDue() {
		return
	}
	select {
	case c.check <- struct{}{}:
	default:
	}
}

// checkpoints runs beside the syncs: nobody's reply waits for a signature.
func (c *Committer) checkpoints() {
	defer c.wg.Done()
	for range c.check {
		// Options.Trouble is told of what goes wrong here, and a stopped log tells the next sync.
		_ = c.log.Checkpoint()
	}
}
