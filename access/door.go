package access

import (
	"context"
	"errors"
	"fmt"
	"time"

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

// Admit runs the prologue with peer, which connected to the endpoint of that name, within
// AuthTimeout. place is what Reserve returned; if nil, Admit waits for one. After an error the
// connection must be closed; the client has been told the reason if possible. A *Rejection in its
// chain is the Authenticator's to record. On success, link has no deadlines.
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
		auth = OpenMode{} // the kernel knows its own programs, and no key makes one of them another caller
	}
	if p.offer, err = auth.Offer(ctx, peer, socket); err != nil {
		return Identity{}, fmt.Errorf("make authentication offer: %w", err)
	}
	if p.offer.Done != nil {
		defer p.offer.Done()
	}
	return p.run()
}

// Refusal is the fault for a client without a place.
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

// Farewell tells an admitted connection why it is closed after all.
func (d *Door) Farewell(link Lines, reason *fault.Fault) error {
	p := prologue{link: link, stamps: schema.NewStamper()}
	return p.farewell(reason)
}

// Close rejects the connections that have not authenticated, and all later ones.
func (d *Door) Close() { d.gate.close() }

// Peer is the process at the other end of a connection, as the transport reports it.
type Peer struct {
	PID int // 0 where the system does not say
	UID int
	GID int

	Identity Identity // what it proved in the prologue
	// Agent is the process of the kernel whose program it belongs to, where the transport finds that out; 0: no program that
	// the kernel hosts. What it proves besides does not count.
	Agent int64
}

// Authenticator decides who gets through the prologue (PROTOCOL 4).
type Authenticator interface {
	// Offer begins the exchange with peer, which came by the endpoint's socket of that name. It is called from many
	// goroutines. ctx ends when the server shuts down.
	Offer(ctx context.Context, peer Peer, socket string) (Offer, error)
}

// Offer is one connection's exchange: what the daemon says first, and what it takes for an answer.
type Offer struct {
	// Data is the data of the daemon's first frame, one JSON object with a member `scheme`.
	Data []byte
	// Issued is the time in that frame's metadata, which a signature may be bound to; zero: when it is sent.
	Issued time.Time
	// Verify checks the data of the client's answer and returns whom it proves the client to be.
	// Its error is sent to the client, so it should be a *fault.Fault; the connection is closed
	// after it. If nil, this is open mode: any answer is accepted, also one without data or
	// metadata, or a command in place of the reply.
	Verify func(answer []byte) (Identity, error)
	// Hold is called after Verify has refused: the refusal is sent after delay, and then release is
	// called. By then the connection has given up its place. If nil, the refusal is sent at once.
	Hold func() (delay time.Duration, release func())
	// Done is called when the exchange has ended, with any result: nothing later may count as an
	// answer. It may be nil.
	Done func()
}

// Identity is who a client has proven to be.
type Identity struct {
	Key   *AuthorizedKey // its line in authorized_keys; nil in open mode
	Agent int64          // the process of the kernel that it is; 0: the operator
}

// OpenMode admits every peer that answers (BRIDGE 4.2.5): the directory's permissions have decided
// before.
type OpenMode struct{}

// Offer implements Authenticator.
func (OpenMode) Offer(context.Context, Peer, string) (Offer, error) {
	return Offer{Data: []byte(`{"scheme":"none"}`)}, nil
}
