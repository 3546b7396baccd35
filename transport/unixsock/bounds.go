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

// Bounds limit the connections of agents (PROTOCOL 9). Further ones are refused without delaying other clients. The
// operator has no bound.
type Bounds struct {
	Connections int // of one agent, in all its processes and at all endpoints
	Prologues   int // of these, those in their prologue
	Agents      int // of all agents; further descriptors are reserved for the operator and the kernel
}

// DefaultBounds returns the Bounds of a Server whose config has none.
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

// answeredPerSecond is the number of refused connections of an agent in a second that get an error frame. Further ones
// are closed without one, which costs less.
const answeredPerSecond = 16

// floodPerSecond is the number of failed connections of an agent in a second, refused or ended before they have
// authenticated, that are a flood.
const floodPerSecond = 512

// agentConns counts the connections of agents.
type agentConns struct {
	bounds Bounds

	mu    sync.Mutex
	each  map[int64]*agentCount
	total int
	sweep int // size of each map above which unneeded entries are removed

	flooders map[int]int64 // agents of processes that flood, by PID; removed after floodMemory
	flooded  time.Time     // when the first of them was added
}

// floodMemory is the time for which a flooding process is refused by its PID. That saves the identification, most of
// the cost of a refusal. The time is too short for the PID to be reused.
const floodMemory = time.Second

// agentCount is the count of one agent with connections, or with failed ones in this second.
type agentCount struct {
	open   int
	failed int       // connections that failed since
	since  time.Time // beginning of the second
}

func newAgentConns(b Bounds) *agentConns {
	return &agentConns{bounds: b, each: make(map[int64]*agentCount)}
}

// enter counts a new connection of an agent, or returns errConnections or errAgents. After nil, leave has to follow.
func (r *agentConns) enter(agent int64) error {
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

// leave counts a connection of an agent as ended.
func (r *agentConns) leave(agent int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total--
	r.each[agent].open--
}

// failed counts a failed connection of an agent, and returns the number of failed ones in this second.
func (r *agentConns) failed(agent int64) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := r.of(agent)
	if now := time.Now(); now.Sub(own.since) >= time.Second {
		own.failed, own.since = 0, now
	}
	own.failed++
	return own.failed
}

// flood records that a process of an agent floods.
func (r *agentConns) flood(pid int, agent int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.flooders == nil {
		r.flooders, r.flooded = make(map[int]int64), time.Now()
	}
	r.flooders[pid] = agent
}

// flooder returns the agent of nc's peer if that was recorded as flooding within floodMemory.
func (r *agentConns) flooder(nc net.Conn) (agent int64, ok bool) {
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

// of returns the count of an agent. The caller holds mu.
func (r *agentConns) of(agent int64) *agentCount {
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
	own = &agentCount{}
	r.each[agent] = own
	return own
}

// reserveSize is the number of descriptors that a Server reserves: enough to accept and identify operators'
// connections, and for the kernel to kill a process of which descriptors are exhausted.
const reserveSize = 16

// reserve holds descriptors that are released when the process has no free one, so that the operator can be admitted.
// They are opened again after a connection has ended; until then no agent is admitted.
type reserve struct {
	mu    sync.Mutex
	files []*os.File
}

// refill opens the released descriptors again, as many as possible.
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

// full reports whether the reserve is complete.
func (r *reserve) full() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.files) == reserveSize
}

// release closes the reserved descriptors, and reports whether there were any.
func (r *reserve) release() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, file := range r.files {
		_ = file.Close() // opened only to occupy a descriptor
	}
	had := len(r.files) > 0
	r.files = nil
	return had
}

// exhausted reports whether err means that no descriptor is free.
func exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
