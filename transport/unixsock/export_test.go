package unixsock

import (
	"context"
	"errors"
	"net"

	"github.com/promptware-os/pwos/schema"
)

// What the tests need to drive the prologue on fake time: real sockets know real time only.

type (
	Lines = lines
	Gate  struct{ *gate }
)

var (
	ErrEvicted  = errEvicted
	ErrClosing  = errClosing
	ErrNoPlace  = errNoPlace
	ErrPrologue = errPrologue
	JudgePeer   = judgePeer
	Exchange    = exchange
	HiddenName  = hiddenName
	Publish     = publish
	TryLock     = tryLock
	Acquire     = acquire
)

const (
	AuthGrace  = authGrace
	CrowdGrace = crowdGrace
)

func NewGate() *Gate { return &Gate{newGate(DefaultBounds().Prologues)} }

func RunPrologue(link Lines, offer Offer) (Identity, error) {
	p := prologue{link: link, offer: offer, stamps: schema.NewStamper()}
	identity, err := p.run()
	if wrong := (*rejection)(nil); errors.As(err, &wrong) {
		err = errors.Join(err, p.reject(context.Background(), wrong))
	}
	return identity, err
}

// Receive is what happens to a connection between accept and handler.
func (s *Server) Receive(ctx context.Context, link Lines) (Identity, error) {
	return s.admit(ctx, link, nil, Peer{PID: 1}, "")
}

// Remember is what happens to a connection that was accepted before the shutdown and received after it.
func (s *Server) Remember(conn net.Conn) { s.remember(conn) }

func (s *Server) Gate() *Gate { return &Gate{s.gate} }

// Enter and the rest reach the methods of the gate.
func (g *Gate) Enter(ctx context.Context, conn deadliner, pid int) (*visitor, error) {
	return g.enter(ctx, conn, pid)
}

func (g *Gate) EnterAgent(conn deadliner, agent int64) (*visitor, error) {
	return g.enterAgent(conn, crowdOf(Peer{Agent: agent}))
}
func (g *Gate) Leave(v *visitor, passed bool) error { return g.leave(v, passed) }
func (g *Gate) Close()                              { g.close() }
func (g *Gate) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.inside
}

// CrowdOf is what the gate takes for one process.
func CrowdOf(p Peer) int { return crowdOf(p) }

// Probe is probe without the file that it is about.
func Probe(ctx context.Context, path string) (Liveness, error) {
	f, err := probe(ctx, path)
	return f.state, errors.Join(err, f.err)
}
