package unixsock

import (
	"cmp"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Bounds are how many connections agents may have (PROTOCOL 9). Further ones are refused without
// delaying other clients. The operator has no bound.
type Bounds struct {
	Connections int // of one agent, over all its processes and all endpoints
	Prologues   int // of those, how many may be in their prologue
	Agents      int // of all agents together: the rest of the descriptors is reserved for the operator and the kernel itself
}

// DefaultBounds are used by a Server without Bounds.
func DefaultBounds() Bounds { return Bounds{Connections: 32, Prologues: 8, Agents: 256} }

func (b Bounds) orDefault() Bounds {
	d := DefaultBounds()
	return Bounds{
		Connections: cmp.Or(b.Connections, d.Connections), Prologues: cmp.Or(b.Prologues, d.Prologues), Agents: cmp.Or(b.Agents, d.Agents),
	}
}

var (
	errConnections = errors.New("the agent has too many connections")
	errAgents      = errors.New("agents have too many connections")
)

// toldPerSecond is how many refusals a second of one agent are answered with an error frame. Those beyond are closed
// without a word, which costs less.
const toldPerSecond = 16

// floodPerSecond is how many connections of an agent may fail in a second, refused or ended before they have
// authenticated, before it is taken for a flood.
const floodPerSecond = 512

// residents counts the connections of agents.
type residents struct {
	bounds Bounds

	mu    sync.Mutex
	each  map[int64]*resident
	total int
	sweep int // how many there may be in each before those that are not needed are forgotten

	flooders map[int]int64 // processes of agents that flood, with their agent; forgotten after floodMemory
	flooded  time.Time     // when the first of them was noted
}

// floodMemory is how long a flooding process of an agent is refused without identifying it again,
// which is most of the cost of a refusal. No other process can get its PID so soon.
const floodMemory = time.Second

// resident is one agent that has connections, or had some in this second.
type resident struct {
	open   int
	failed int       // that failed since
	since  time.Time // the beginning of the second
}

func newResidents(b Bounds) *residents {
	return &residents{bounds: b, each: make(map[int64]*resident)}
}

// enter counts one more connection of an agent; leave has to follow where it returns nil.
func (r *residents) enter(agent int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := r.of(agent)
	switch {
	case own.open >= r.bounds.Connections:
		return errConnections
	case r.total >= r.bounds.Agents:
		return errAgents
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
	r.each[agent].open--
}

// failed counts a failed connection of an agent, and returns how many failed in this second.
func (r *residents) failed(agent int64) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := r.of(agent)
	if now := time.Now(); now.Sub(own.since) >= time.Second {
		own.failed, own.since = 0, now
	}
	own.failed++
	return own.failed
}

// flood notes a process of an agent that floods.
func (r *residents) flood(pid int, agent int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.flooders == nil {
		r.flooders, r.flooded = make(map[int]int64), time.Now()
	}
	r.flooders[pid] = agent
}

// flooder returns the agent of the process at the other end of nc, where it was noted lately.
func (r *residents) flooder(nc net.Conn) (agent int64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.flooders == nil {
		return 0, false
	}
	if time.Since(r.flooded) >= floodMemory {
		r.flooders = nil
		return 0, false
	}
	peer, err := PeerOf(nc)
	if err != nil {
		return 0, false
	}
	agent, ok = r.flooders[peer.PID]
	return agent, ok
}

// of returns the resident of an agent. The caller holds mu.
func (r *residents) of(agent int64) *resident {
	own := r.each[agent]
	if own != nil {
		return own
	}
	if len(r.each) >= r.sweep {
		for agent, old := range r.each {
			if old.open == 0 && time.Since(old.since) >= time.Second {
				delete(r.each, agent)
			}
		}
		r.sweep = 2*len(r.each) + 16
	}
	own = &resident{}
	r.each[agent] = own
	return own
}

// reserveSize is how many descriptors a Server holds back: enough to accept operators' connections,
// to identify them, and for a kernel that must end the process that took all others.
const reserveSize = 16

// reserve holds descriptors that are released when the process has no others left, so that the
// operator can be admitted. They are reopened when a connection has ended; until then no agent is
// admitted.
type reserve struct {
	mu    sync.Mutex
	files []*os.File
}

// refill reopens the missing ones, as far as possible.
func (r *reserve) refill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.files) < reserveSize {
		file, err := os.Open(os.DevNull)
		if err != nil {
			return
		}
		r.files = append(r.files, file)
	}
}

// full reports whether nothing is missing.
func (r *reserve) full() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.files) == reserveSize
}

// release gives the descriptors up, and reports whether there were any.
func (r *reserve) release() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, file := range r.files {
		_ = file.Close() // it was only opened for its descriptor
	}
	had := len(r.files) > 0
	r.files = nil
	return had
}

// exhausted reports whether an error says that no descriptor is left.
func exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
