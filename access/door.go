package access

import (
	"context"
	"errors"
	"fmt"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Door leads connections through the prologue, whatever carries them, so many of them at once.
type Door struct {
	auth Authenticator
	gate *gate
}

// NewDoor returns a Door that asks auth, OpenMode where nil. An agent may have so many connections in their prologue.
func NewDoor(auth Authenticator, prologues int) *Door {
	if auth == nil {
		auth = OpenMode{}
	}
	return &Door{auth: auth, gate: newGate(prologues)}
}

// Reserve takes a place for a connection of an agent, without waiting; Admit has to follow where it returns nil. Refusal
// says what its error means.
func (d *Door) Reserve(conn deadliner, peer Peer) (*Place, error) {
	return d.gate.enterAgent(conn, crowdOf(peer))
}

// Admit runs the prologue with peer, which came by the endpoint of that name, within AuthTimeout. place is what Reserve took;
// nil: it waits for one. Its error is why the connection has to be closed; what could be said to the client about it has been
// said. A *Rejection among it is the Authenticator's to record. After it, link has no deadlines.
func (d *Door) Admit(ctx context.Context, link Lines, place *Place, peer Peer, socket string) (Identity, error) {
	p := prologue{link: link, stamps: schema.NewStamper()}
	if place == nil {
		var err error
		if place, err = d.gate.enter(ctx, link, crowdOf(peer)); err != nil {
			return Identity{}, errors.Join(err, p.farewell(d.Refusal(err)))
		}
	}
	identity, err := d.exchange(ctx, &p, peer, socket)
	thrown := d.gate.leave(place, err == nil)
	if wrong := (*Rejection)(nil); errors.As(err, &wrong) {
		// After the place was given back, so that the delay for a wrong answer does not block other logins.
		return Identity{}, errors.Join(err, p.reject(ctx, wrong))
	}
	if thrown == nil || err == nil && errors.Is(thrown, errEvicted) {
		return identity, err // its answer came just in time
	}
	return Identity{}, errors.Join(thrown, err, p.farewell(d.Refusal(thrown)))
}

// exchange runs the prologue.
func (d *Door) exchange(ctx context.Context, p *prologue, peer Peer, socket string) (_ Identity, err error) {
	auth := d.auth
	if peer.Agent != 0 {
		auth = OpenMode{} // the kernel knows its own programs, and no key makes one of them anybody else
	}
	if p.offer, err = auth.Offer(ctx, peer, socket); err != nil {
		return Identity{}, fmt.Errorf("make authentication offer: %w", err)
	}
	if p.offer.Done != nil {
		defer p.offer.Done()
	}
	return p.run()
}

// Refusal is what a client is told that has no place.
func (d *Door) Refusal(reason error) *fault.Fault {
	switch {
	case errors.Is(reason, errPrologue):
		return fault.ConnectionTooMany.New(
			"an agent may have %d connections that have not answered %s, and this one has as many: answer on those, then connect again", d.gate.prologues, authenticate)
	case errors.Is(reason, errClosing):
		return fault.KernelStopping.New("the kernel is shutting down")
	}
	return fault.AuthBusy.New("too many connections have not answered %s: connect again and answer at once", authenticate)
}

// Farewell tells a connection that Admit let in why it is sent away all the same.
func (d *Door) Farewell(link Lines, reason *fault.Fault) error {
	p := prologue{link: link, stamps: schema.NewStamper()}
	return p.farewell(reason)
}

// Close rejects the connections that have not authenticated, and all later ones.
func (d *Door) Close() { d.gate.close() }
