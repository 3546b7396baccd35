package unixsock

import (
	"net"
	"sync"
	"time"
)

// Idle ends a daemon that had no connection for a time. It counts connections from accept on, including those in their
// prologue. A connection that is counted keeps the daemon. One that is accepted after the time is over is closed before
// its first frame, so that its client knows that nothing ran, and starts the next daemon.
type Idle struct {
	limit time.Duration // 0: never
	over  chan struct{} // closed when the time is over

	mu    sync.Mutex
	conns int
	ended bool // no further connection is admitted
	turn  int  // number of the current wait, so that timers of earlier ones are ignored
	timer *time.Timer
}

// NewIdle returns an Idle with that time; 0: it never ends the daemon.
func NewIdle(limit time.Duration) *Idle { return &Idle{limit: limit, over: make(chan struct{})} }

// Expired returns a channel that is closed when the time is over.
func (i *Idle) Expired() <-chan struct{} { return i.over }

// Begin starts the timer; Stop has to follow.
func (i *Idle) Begin() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.wait()
}

// Stop admits no further connection and stops the timer.
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

// Occupied counts all agents with programs as one connection while on. It has no effect after the time is over.
func (i *Idle) Occupied(on bool) {
	if on {
		i.enter()
		return
	}
	i.leave()
}

// wait restarts the timer. The caller holds mu.
func (i *Idle) wait() {
	if i.limit == 0 {
		return
	}
	i.turn++
	turn := i.turn
	i.timer = time.AfterFunc(i.limit, func() { i.expire(turn) })
}

// rest stops the timer. The caller holds mu.
func (i *Idle) rest() {
	i.turn++
	if i.timer != nil {
		i.timer.Stop()
		i.timer = nil
	}
}

// expire ends the daemon, unless a connection was counted while the timer fired.
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
			_ = conn.Close() // nothing was sent on it
			continue
		}
		return &countedConn{UnixConn: conn.(*net.UnixConn), left: sync.OnceFunc(l.idle.leave)}, nil
	}
}

// countedConn is a connection that Idle counts until it is closed.
type countedConn struct {
	*net.UnixConn
	left func()
}

var _ Detacher = (*countedConn)(nil)

// Detach implements Detacher: the connection continues.
func (c *countedConn) Detach() error { return c.UnixConn.Close() }

// Close closes the connection; it may be called more than once.
func (c *countedConn) Close() error {
	defer c.left()
	return c.UnixConn.Close()
}
