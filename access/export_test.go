package access

import (
	"context"
	"errors"

	"github.com/promptware-os/pwos/schema"
)

// The gate and the prologue, for tests on fake time.

// Gate is the gate of a Door.
type Gate struct{ *gate }

var (
	ErrEvicted  = errEvicted
	ErrClosing  = errClosing
	ErrNoPlace  = errNoPlace
	ErrPrologue = errPrologue
	Exchange    = exchange
)

const (
	AuthGrace  = authGrace
	CrowdGrace = crowdGrace

	// Prologues is how many places an agent has in a gate of NewGate.
	Prologues = 8
)

func NewGate() *Gate { return &Gate{newGate(Prologues)} }

func RunPrologue(link Lines, offer Offer) (Identity, error) {
	p := prologue{link: link, offer: offer, stamps: schema.NewStamper()}
	identity, err := p.run()
	if wrong := (*Rejection)(nil); errors.As(err, &wrong) {
		err = errors.Join(err, p.reject(context.Background(), wrong))
	}
	return identity, err
}

func (d *Door) Gate() *Gate { return &Gate{d.gate} }

// Enter, EnterAgent, Leave, Close and Waiting reach the methods of the gate.
func (g *Gate) Enter(ctx context.Context, conn deadliner, pid int) (*Place, error) {
	return g.enter(ctx, conn, pid)
}

func (g *Gate) EnterAgent(conn deadliner, agent int64) (*Place, error) {
	return g.enterAgent(conn, crowdOf(Peer{Agent: agent}))
}
func (g *Gate) Leave(v *Place, passed bool) error { return g.leave(v, passed) }
func (g *Gate) Close()                            { g.close() }
func (g *Gate) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.inside
}
