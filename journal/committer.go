package journal

import "sync"

// A Committer is group commit: it runs at most one fsync at a time, and all that is flushed and requested meanwhile shares
// the next one. It runs on a goroutine of its own, or on one that was lent to it.
type Committer struct {
	log  *Log
	done func(through uint64, err error)

	mu    sync.Mutex // held for a few assignments
	asked bool       // for an fsync, which has not begun
	left  bool       // that is left to the goroutine that is lent
	busy  bool       // an fsync is running, or its done is
	lent  uint64     // the ticket of the goroutine that is lent; 0: none is
	lends uint64     // tickets given out

	wake  chan struct{} // capacity 1: the goroutine is to look for a request
	check chan struct{} // capacity 1, likewise for checkpoints
	quit  chan struct{}
	once  sync.Once
	wg    sync.WaitGroup
}

// NewCommitter starts a committer on log. After each fsync it calls done with what Log.Sync returned: entries up to and
// including through are durable, and with err, which is ErrStopped, none after it ever will be in this Log. done runs on
// the goroutine of the fsync, so the next one waits for it; it must not call Close.
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
func (c *Committer) Request() { c.RequestFor(0) }

// RequestFor is Request on behalf of the goroutine that holds the given ticket, where nobody else waits for the fsync: as
// long as it is lent, the request is left to its Return.
func (c *Committer) RequestFor(ticket uint64) {
	c.mu.Lock()
	c.left = ticket != 0 && ticket == c.lent && (c.left || !c.asked)
	c.asked = true
	wake := c.unattended()
	c.mu.Unlock()
	if wake {
		c.rouse()
	}
}

// Lend offers the caller's goroutine for the fsync of its own request: for who would only wait for the answer, that saves two
// hand-overs and the wake-up of a processor. It returns the ticket to name in RequestFor; then the caller has to call Return, soon
// and whatever happens. 0 says that it is not needed: an fsync is running, or another goroutine is lent.
func (c *Committer) Lend() (ticket uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy || c.lent != 0 {
		return 0
	}
	c.lends++
	c.lent = c.lends
	return c.lent
}

// Return ends a Lend. It serves one request, where one is outstanding and no fsync is running: then it takes as long as
// that does. It must not be called after Close.
func (c *Committer) Return() {
	c.mu.Lock()
	c.lent, c.left = 0, false
	c.mu.Unlock()
	if !c.begin() {
		return
	}
	if c.commit() {
		c.rouse() // the caller has something else to do
	}
}

// Close serves a request that is outstanding, and returns when both goroutines have ended. No goroutine may be lent. The Log
// stays open.
func (c *Committer) Close() {
	c.once.Do(func() { close(c.quit) })
	c.wg.Wait()
}

// unattended reports whether there is a request that nobody will come by to see. It wants mu held.
func (c *Committer) unattended() bool { return c.asked && !c.busy && !c.left }

// rouse has the goroutine look for a request.
func (c *Committer) rouse() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *Committer) syncs() {
	defer c.wg.Done()
	defer close(c.check)
	for {
		select {
		case <-c.wake:
			c.serve()
		case <-c.quit:
			c.serve()
			return
		}
	}
}

// serve runs fsyncs as long as they are asked for.
func (c *Committer) serve() {
	for c.begin() {
		c.commit()
	}
}

// begin takes the request, where there is one and no fsync is running.
func (c *Committer) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.asked || c.busy {
		return false
	}
	c.asked, c.left, c.busy = false, false, true
	return true
}

// commit runs one fsync, after begin. It reports whether there is another request that nobody attends to.
func (c *Committer) commit() (more bool) {
	c.done(c.log.Sync())
	if c.log.CheckpointDue() {
		select {
		case c.check <- struct{}{}:
		default:
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = false
	return c.unattended()
}

// checkpoints runs beside the syncs: nobody's reply waits for a signature.
func (c *Committer) checkpoints() {
	defer c.wg.Done()
	for range c.check {
		for c.log.CheckpointDue() { // again: another may have become due while one was written
			// Options.Trouble is told of what goes wrong here, and a stopped log tells the next sync.
			_ = c.log.Checkpoint()
		}
	}
}
