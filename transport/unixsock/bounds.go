package unixsock

import (
	"errors"
	"sync"
	"time"
)

// Bounds are how many connections agents may have (PROTOCOL 9). What is over them is refused, and nobody else waits for
// that. The operator has no bound.
type Bounds struct {
	Connections int // of one agent, over all its processes and all endpoints
	Prologues   int // of those, how many may be in their prologue
	Agents      int // of all agents together: the rest of the descriptors is reserved for the operator and the kernel itself
}

// DefaultBounds are those of a Server that is given none.
func DefaultBounds() Bounds { return Bounds{Connections: 32, Prologues: 8, Agents: 256} }

var (
	errConnections = errors.New("the agent has too many connections")
	errAgents      = errors.New("agents have too many connections")
)

// toldPerSecond is how many refusals a second of one agent are answered with an error frame. Those beyond are closed
// without a word, which costs less.
const toldPerSecond = 16

// residents counts the connections of agents.
type residents struct {
	bounds Bounds

	mu    sync.Mutex
	each  map[int64]*resident
	total int
}

// resident is one agent that has connections.
type resident struct {
	open    int
	refused int       // since
	since   time.Time // the begin of the second
}

func newResidents(b Bounds) *residents {
	return &residents{bounds: b, each: make(map[int64]*resident)}
}

// enter counts one more connection of an agent; leave has to follow where it returns nil.
func (r *residents) enter(agent int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := r.each[agent]
	switch {
	case own != nil && own.open >= r.bounds.Connections:
		return errConnections
	case r.total >= r.bounds.Agents:
		return errAgents
	case own == nil:
		own = &resident{}
		r.each[agent] = own
	}
	own.open++
	r.total++
	return nil
}

// leave counts one less.
func (r *residents) leave(agent int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total--
	if own := r.each[agent]; own.open > 1 {
		own.open--
	} else {
		delete(r.each, agent)
	}
}

// refused counts a refusal of an agent and returns how many there were in this second.
func (r *residents) refused(agent int64) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := r.each[agent]
	if own == nil {
		return 1
	}
	if now := time.Now(); now.Sub(own.since) >= time.Second {
		own.refused, own.since = 0, now
	}
	own.refused++
	return own.refused
}
