package unixsock

import (
	"net"
	"sync"
	"time"
)

// Idle tells when a daemon is to end that nobody has been connected to for a while. It counts connections from accept on, so that a
// client in its prologue is one. A connection either is counted, and keeps the daemon, or comes after the end was decided
// and is closed before the first word: then its client knows that nothing was run, and starts the next daemon.
type Idle struct {
	limit time.Duration // 0: never
	over  chan struct{} // closed when the end is decided

	mu    sync.Mutex
	conns int
	ended bool // no connection is let in any more
	turn  int  // which wait is meant: a timer of an earlier one comes too late
	timer *time.Timer
}

// NewIdle returns one that waits for so long; 0: for ever.
func NewIdle(limit time.Duration) *Idle { return &Idle{limit: limit, over: make(chan struct{})} }

// Expired is closed when the time is up.
func (i *Idle) Expired() <-chan struct{} { return i.over }

// Begin starts the time; Stop has to follow.
func (i *Idle) Begin() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.wait()
}

// Stop lets nobody in any more and forgets the time.
func (i *Idle) Stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ended = true
	i.rest()
}

func (i *Idle) enter() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ended {
		return false
	}
	i.conns++
	i.rest()
	return true
}

func (i *Idle) leave() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.conns--; i.conns == 0 && !i.ended {
		i.wait()
	}
}

// Occupied counts the agents with programs as one connection. Where the end was decided before, the kernel is about to end
// them.
func (i *Idle) Occupied(on bool) {
	if on {
		i.enter()
		return
	}
	i.leave()
}

// wait starts the time anew. The caller holds mu.
func (i *Idle) wait() {
	if i.limit == 0 {
		return
	}
	i.turn++
	turn := i.turn
	i.timer = time.AfterFunc(i.limit, func() { i.expire(turn) })
}

// rest ends a wait. The caller holds mu.
func (i *Idle) rest() {
	i.turn++
	if i.timer != nil {
		i.timer.Stop()
		i.timer = nil
	}
}

// expire decides the end, unless somebody came while the timer was on its way.
func (i *Idle) expire(turn int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.turn == turn && !i.ended {
		i.ended = true
		close(i.over)
	}
}

// Count returns a listener whose connections are counted.
func (i *Idle) Count(l net.Listener) net.Listener {
	if i.limit == 0 {
		return l
	}
	return counted{l, i}
}

// counted is a listener whose connections Idle counts.
type counted struct {
	net.Listener
	idle *Idle
}

// Accept returns the next connection that keeps the daemon.
func (l counted) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if !l.idle.enter() {
			_ = conn.Close() // nothing was said that could be lost
			continue
		}
		return &countedConn{UnixConn: conn.(*net.UnixConn), left: sync.OnceFunc(l.idle.leave)}, nil
	}
}

// countedConn is a connection until it is closed.
type countedConn struct {
	*net.UnixConn
	left func()
}

var _ Detacher = (*countedConn)(nil)

// Detach implements Detacher: the connection goes on.
func (c *countedConn) Detach() error { return c.UnixConn.Close() }

// Close closes the connection; it may be called again.
func (c *countedConn) Close() error {
	defer c.left()
	return c.UnixConn.Close()
}
