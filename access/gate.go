package access

import (
	"context"
	"crypto/cipher"
	"errors"
	"hash/fnv"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// AuthTimeout is how long a connection may take to answer the prologue, from accept to the last byte (PROTOCOL 4).
	AuthTimeout = 10 * time.Second
	// AuthWaiting is how many connections may be in their prologue at once at a Door, over all its
	// listeners (PROTOCOL 4).
	AuthWaiting = 64
	// AgentsWaiting is how many of those may be agents': the rest is reserved for the operator.
	AgentsWaiting = AuthWaiting / 2

	// authGrace is how long an operator's connection keeps its place while others wait for one.
	authGrace = time.Second
	// crowdGrace is the grace of an agent, and of a process that has more than crowdSize places and
	// has not authenticated on any.
	crowdGrace = 100 * time.Millisecond
	crowdSize  = AuthWaiting / 8

	// maxQueued is how many connections may wait for a place, as many as a listen queue holds.
	maxQueued = 4096
)

var (
	errEvicted  = errors.New("evicted: other connections were waiting for the place")
	errNoPlace  = errors.New("too many connections are in their prologue")
	errPrologue = errors.New("the agent has too many connections in their prologue")
	errClosing  = errors.New("the server is shutting down")
)

// gate counts the connections that have not authenticated yet, and decides which to evict when
// there are too many.
//
// An agent's connection never waits: it takes a free place or one of an agent that has more, or it
// is refused. It never takes an operator's. An operator's connection waits on its own goroutine.
// Letting newcomers wait for a free place would let 64 silent connections lock everybody out, ten
// seconds at a time; evicting the oldest connection would let a burst of honest clients evict each
// other on a busy machine. So the process with the most places loses its oldest once that one has
// had its grace. A newcomer of another process waits for that alone; newcomers of the same process
// queue, first come first served.
type gate struct {
	prologues int // places of one agent

	mu      sync.Mutex
	crowds  map[int]*crowd // by process, see crowdOf
	inside  int            // places in all crowds
	agents  int            // places of agents
	waiting [3]int         // connections that wait for a place, by rank
	left    chan struct{}  // closed and replaced when a place becomes free
	closed  bool

	turn chan struct{} // has the token of the connection that is first in the queue
}

// crowd is the places of one process.
type crowd struct {
	places []*Place // at least one, in the order of arrival
	agent  bool
	passed bool // a connection of it has authenticated
}

// Place is a connection's place among those that run their prologue.
type Place struct {
	conn   deadliner
	crowd  int
	since  time.Time
	thrown error // why it was evicted; guarded by gate.mu
}

func newGate(prologues int) *gate {
	return &gate{prologues: prologues, crowds: make(map[int]*crowd), left: make(chan struct{}), turn: make(chan struct{}, 1)}
}

// crowdOf returns the key of the peer's crowd. All processes of a hosted program share one: else it
// could fork to take the places of others. So do all addresses of a network of IPv6, which one
// machine may have.
func crowdOf(p Peer) int {
	switch {
	case p.Agent != 0:
		return -int(p.Agent)
	case p.Address.IsValid():
		sum := fnv.New32a()
		network := Network(p.Address).As16()
		sum.Write(network[:])
		return int(sum.Sum32() >> 1) // not negative, on any machine
	}
	return p.PID
}

// Network returns what one machine may have all addresses of: an address of IPv4, or the first of a
// network of IPv6, whose prefix has 64 bits.
func Network(a netip.Addr) netip.Addr {
	if a = a.Unmap().WithZone(""); a.Is4() {
		return a
	}
	return netip.PrefixFrom(a, 64).Masked().Addr()
}

// enterAgent takes a place for a connection of an agent, without waiting, or returns errPrologue.
func (g *gate) enterAgent(conn deadliner, key int) (*Place, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	own := g.size(key)
	switch {
	case g.closed:
		return nil, errClosing
	case own >= g.prologues:
		return nil, errPrologue
	case g.agents >= AgentsWaiting || g.inside >= AuthWaiting:
		c := g.largest(true)
		if c == nil || len(c.places) <= own+1 {
			return nil, errNoPlace
		}
		g.throw(c.places[0], errEvicted)
	}
	return g.admit(conn, key, time.Now())
}

// enter waits for a place for an operator's connection and takes it; conn's deadlines are set so
// that the place is given back in time. It returns an error if ctx or AuthTimeout ends, the gate is
// closed, or conn is closed.
func (g *gate) enter(ctx context.Context, conn deadliner, key int) (*Place, error) {
	arrived := time.Now()
	v, _, _, err := g.tryEnter(conn, key, arrived, newcomer)
	if v != nil || err != nil {
		return v, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, AuthTimeout, errNoPlace)
	defer cancel()
	rank, ok := g.queue(key)
	if !ok {
		return nil, errNoPlace
	}
	defer g.unqueue(rank)
	if rank == inTurn {
		select {
		case g.turn <- struct{}{}:
			defer func() { <-g.turn }()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	for {
		v, left, wait, err := g.tryEnter(conn, key, arrived, rank)
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

// rank orders the connections that wait for a place.
type rank int

const (
	newcomer rank = iota // yields to those that wait, unless its process has no place yet
	inTurn               // waits behind others of the process with the most places
	ahead                // is of another process, and goes first
)

// yields reports whether connections of higher rank wait. The caller holds mu.
func (g *gate) yields(r rank, key int) bool {
	switch r {
	case newcomer:
		return g.waiting[inTurn]+g.waiting[ahead] > 0 && g.size(key) > 0
	case inTurn:
		return g.waiting[ahead] > 0
	}
	return false
}

// queue counts one more waiting connection, and returns its rank; false if too many wait already.
func (g *gate) queue(key int) (rank, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := ahead
	if c := g.largest(false); c != nil && g.size(key) >= len(c.places) {
		r = inTurn
	}
	if g.waiting[inTurn]+g.waiting[ahead] >= maxQueued {
		return r, false
	}
	g.waiting[r]++
	return r, true
}

// unqueue counts one waiting connection less.
func (g *gate) unqueue(r rank) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting[r]--
	if r == ahead {
		g.announce()
	}
}

// tryEnter takes a place, if necessary from another connection. If none can be evicted yet, it
// returns what to wait for: a free place, or the rest of the grace.
func (g *gate) tryEnter(conn deadliner, key int, arrived time.Time, r rank) (*Place, <-chan struct{}, time.Duration, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, nil, 0, errClosing
	}
	if g.yields(r, key) {
		return nil, g.left, crowdGrace, nil
	}
	if g.inside >= AuthWaiting {
		c := g.largest(false)
		if a := g.largest(true); a != nil && a.wait() < c.wait() {
			c = a
		}
		if wait := c.wait(); wait > 0 {
			return nil, g.left, wait, nil
		}
		g.throw(c.places[0], errEvicted)
	}
	v, err := g.admit(conn, key, arrived)
	return v, nil, 0, err
}

// admit takes a place. The caller holds mu.
func (g *gate) admit(conn deadliner, key int, arrived time.Time) (*Place, error) {
	if err := conn.SetDeadline(arrived.Add(AuthTimeout)); err != nil {
		return nil, err
	}
	v := &Place{conn: conn, crowd: key, since: time.Now()}
	c := g.crowds[key]
	if c == nil {
		c = &crowd{agent: key < 0}
		g.crowds[key] = c
	}
	c.places = append(c.places, v)
	g.count(key, 1)
	return v, nil
}

// size is how many places a process has. The caller holds mu.
func (g *gate) size(key int) int {
	if c := g.crowds[key]; c != nil {
		return len(c.places)
	}
	return 0
}

// largest returns the crowd with the most places, only among agents if agents is true, or nil.
// Among equals it is the crowd with the oldest connection. The caller holds mu.
func (g *gate) largest(agents bool) (most *crowd) {
	for _, c := range g.crowds {
		if agents && !c.agent {
			continue
		}
		if most == nil || len(c.places) > len(most.places) ||
			len(c.places) == len(most.places) && c.places[0].since.Before(most.places[0].since) {
			most = c
		}
	}
	return most
}

// wait is how long c's oldest place may still stay. Many silent connections of one process are an
// attack; if others of the process authenticate, they are a burst. An agent has the short grace.
func (c *crowd) wait() time.Duration {
	grace := authGrace
	if c.agent || len(c.places) > crowdSize && !c.passed {
		grace = crowdGrace
	}
	return grace - time.Since(c.places[0].since)
}

// leave releases v's place and clears its deadlines; passed reports whether it has authenticated.
// It returns why v was evicted, or nil.
func (g *gate) leave(v *Place, passed bool) (thrown error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if v.thrown == nil {
		c := g.crowds[v.crowd]
		c.passed = c.passed || passed
		g.remove(v)
	}
	_ = v.conn.SetDeadline(time.Time{}) // fails only on a closed connection, and then no goroutine waits for it
	return v.thrown
}

// close evicts all connections and admits no more.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, c := range g.crowds {
		for _, v := range slices.Clone(c.places) {
			g.throw(v, errClosing)
		}
	}
	g.announce()
}

// throw evicts v, and interrupts its reads and writes so that its goroutine notices.
func (g *gate) throw(v *Place, reason error) {
	g.remove(v)
	v.thrown = reason
	_ = v.conn.SetDeadline(time.Unix(1, 0)) // fails only on a closed connection, which interrupts as well
}

// remove frees v's place. An empty crowd is deleted, so that the gate's memory is bounded by its
// places.
func (g *gate) remove(v *Place) {
	c := g.crowds[v.crowd]
	c.places = slices.DeleteFunc(c.places, func(w *Place) bool { return w == v })
	if len(c.places) == 0 {
		delete(g.crowds, v.crowd)
	}
	g.count(v.crowd, -1)
	g.announce()
}

// count adds n to the places that are taken. The caller holds mu.
func (g *gate) count(key, n int) {
	g.inside += n
	if key < 0 {
		g.agents += n
	}
}

// announce wakes all connections that wait to enter.
func (g *gate) announce() {
	close(g.left)
	g.left = make(chan struct{})
}

// Held seals and opens like the Sealer that it was made from, with sealing keys that are derived
// once and kept. It no longer uses an agent or a file, so it never waits, and continues to work
// after the SSH key was removed from its agent.
//
// It may be used by many goroutines.
type Held struct {
	key   PublicKey
	aeads []cipher.AEAD // one for each algorithm by which a value may have been sealed; ours is the first
}

// Hold derives the sealing keys. The error is one of the signer's, or ctx's cause.
func (s *Sealer) Hold(ctx context.Context) (*Held, error) {
	h := &Held{key: s.signer.key}
	for i, algorithm := range s.algorithms() {
		aead, err := s.cipher(ctx, algorithm)
		switch {
		case err == nil:
			h.aeads = append(h.aeads, aead)
		case i == 0 || ctx.Err() != nil:
			return nil, err
		default: // an agent may do without SHA-1
		}
	}
	return h, nil
}

// Key is the public key from which the sealing key was derived.
func (h *Held) Key() PublicKey { return h.key }

// KeyID names the key as sealed values do, "ssh-fp:SHA256:…".
func (h *Held) KeyID() string { return keyIDText(h.key.id()) }

// Algorithm names the cipher as sealed values do.
func (h *Held) Algorithm() string { return sealAlg }

// Seal is Sealer.Seal.
func (h *Held) Seal(plaintext, aad []byte) (string, error) {
	if err := sealable(plaintext, aad); err != nil {
		return "", err
	}
	return h.key.seal(h.aeads[0], plaintext, aad), nil
}

// Open is Sealer.Open.
func (h *Held) Open(text string) (plaintext, aad []byte, err error) {
	sealed, err := h.key.sealed(text)
	if err != nil {
		return nil, nil, err
	}
	for _, aead := range h.aeads {
		if plaintext, err := aead.Open(nil, sealed.nonce, sealed.text, sealed.aad); err == nil {
			return plaintext, sealed.aad, nil
		}
	}
	return nil, nil, h.key.brokenSeal()
}
