package unixsock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

const (
	// AuthTimeout is how long a connection may take to answer the prologue, from first to last byte (PROTOCOL 4).
	AuthTimeout = 10 * time.Second
	// AuthWaiting is how many connections may be in their prologue at once, over all listeners (PROTOCOL 4).
	AuthWaiting = 64

	// authGrace is how long a connection keeps its place when others want it.
	authGrace = time.Second
	// crowdGrace is that of a process which has more than crowdSize places and has not used one of them yet.
	crowdGrace = 100 * time.Millisecond
	crowdSize  = AuthWaiting / 8
)

var (
	errEvicted = errors.New("evicted: others were waiting for the place")
	errClosing = errors.New("the server is shutting down")
)

// gate is the waiting room of the connections that have not authenticated yet.
//
// When it is full there are two ways to go wrong. Letting newcomers wait lets 64 silent connections shut everybody out,
// ten seconds at a time. Throwing out whoever came first lets a burst of honest clients, on a busy machine, throw each
// other out. So the process with the most places gives up its oldest, when that one has had its grace. Meanwhile the
// newcomer waits, and those behind it in the listen queue. A client of another process than the silent ones is never
// their victim; a thousand silent ones before it cost it 1000/64 times crowdGrace, 1.6 seconds.
type gate struct {
	mu     sync.Mutex
	crowds map[int]*crowd // by process, see crowdOf
	inside int            // visitors in all crowds
	left   chan struct{}  // closed and made anew when a place becomes free
	closed bool
}

// crowd is what one process has in the gate.
type crowd struct {
	visitors []*visitor // at least one, in the order of arrival
	passed   bool       // another of them has authenticated
}

// visitor is a connection in the gate.
type visitor struct {
	conn   deadliner
	pid    int
	since  time.Time
	thrown error // why it was told to go; guarded by gate.mu
}

func newGate() *gate {
	return &gate{crowds: make(map[int]*crowd), left: make(chan struct{})}
}

// enter waits for a place for a connection of process pid, and takes it; conn's deadlines are set so that the place is
// given back in time. It returns an error where ctx ends, the gate is closed, or conn is closed.
func (g *gate) enter(ctx context.Context, conn deadliner, pid int) (*visitor, error) {
	for {
		v, left, wait, err := g.tryEnter(conn, pid)
		if v != nil || err != nil {
			return v, err
		}
		due := time.NewTimer(wait)
		select {
		case <-left:
		case <-due.C:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		due.Stop()
		if err != nil {
			return nil, err
		}
	}
}

// tryEnter takes a place, if need be that of another. Where nobody can be evicted yet it returns what to wait for:
// somebody leaving, or the rest of the grace.
func (g *gate) tryEnter(conn deadliner, pid int) (*visitor, <-chan struct{}, time.Duration, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, nil, 0, errClosing
	}
	now := time.Now()
	if g.inside >= AuthWaiting {
		c := g.largest()
		if wait := c.grace() - now.Sub(c.visitors[0].since); wait > 0 {
			return nil, g.left, wait, nil
		}
		g.throw(c.visitors[0], errEvicted)
	}
	if err := conn.SetDeadline(now.Add(AuthTimeout)); err != nil {
		return nil, nil, 0, err
	}
	v := &visitor{conn: conn, pid: pid, since: now}
	c := g.crowds[pid]
	if c == nil {
		c = &crowd{}
		g.crowds[pid] = c
	}
	c.visitors = append(c.visitors, v)
	g.inside++
	return v, nil, 0, nil
}

// largest returns the crowd with the most visitors; of several that whose first has been here longest.
func (g *gate) largest() (most *crowd) {
	for _, c := range g.crowds {
		if most == nil || len(c.visitors) > len(most.visitors) ||
			len(c.visitors) == len(most.visitors) && c.visitors[0].since.Before(most.visitors[0].since) {
			most = c
		}
	}
	return most
}

// grace is how long c's oldest visitor may stay. Many silent connections of one process are no accident; many of one
// whose others get through are a burst.
func (c *crowd) grace() time.Duration {
	if len(c.visitors) > crowdSize && !c.passed {
		return crowdGrace
	}
	return authGrace
}

// leave gives v's place back and lifts its deadlines; passed says whether it has authenticated. It returns why v was
// told to go, if it was.
func (g *gate) leave(v *visitor, passed bool) (thrown error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if v.thrown == nil {
		c := g.crowds[v.pid]
		c.passed = c.passed || passed
		g.remove(v)
	}
	_ = v.conn.SetDeadline(time.Time{}) // fails on a closed connection alone, and then nothing waits for it
	return v.thrown
}

// close tells everybody to go and lets nobody in any more.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, c := range g.crowds {
		for _, v := range slices.Clone(c.visitors) {
			g.throw(v, errClosing)
		}
	}
	g.announce()
}

// throw takes v's place away and interrupts its reading and writing, so that whoever serves it finds out.
func (g *gate) throw(v *visitor, reason error) {
	g.remove(v)
	v.thrown = reason
	_ = v.conn.SetDeadline(time.Unix(1, 0)) // fails on a closed connection alone, which interrupts as well
}

// remove frees v's place. An empty crowd is forgotten, so that the gate's memory is bounded by its places.
func (g *gate) remove(v *visitor) {
	c := g.crowds[v.pid]
	c.visitors = slices.DeleteFunc(c.visitors, func(w *visitor) bool { return w == v })
	if len(c.visitors) == 0 {
		delete(g.crowds, v.pid)
	}
	g.inside--
	g.announce()
}

// announce wakes whoever waits to enter.
func (g *gate) announce() {
	close(g.left)
	g.left = make(chan struct{})
}
