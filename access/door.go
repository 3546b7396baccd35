package access

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Door runs the prologue of connections of any transport, and bounds how many run at once.
type Door struct {
	auth Authenticator
	gate *gate
}

// NewDoor returns a Door that uses auth, or OpenMode if nil. prologues bounds how many connections
// of one agent may be in their prologue.
func NewDoor(auth Authenticator, prologues int) *Door {
	if auth == nil {
		auth = OpenMode{}
	}
	return &Door{auth: auth, gate: newGate(prologues)}
}

// Reserve reserves a place for a connection of an agent, without waiting; if it returns nil, the
// caller must call Admit. Refusal explains its error.
func (d *Door) Reserve(conn deadliner, peer Peer) (*Place, error) {
	return d.gate.enterAgent(conn, crowdOf(peer))
}

// Enter reserves a place for a connection that is no agent's, and waits for one if necessary; Admit
// or Leave has to follow. It bounds what the transport does before the prologue, such as a
// handshake, together with the prologue. Refusal explains its error.
func (d *Door) Enter(ctx context.Context, conn deadliner, peer Peer) (*Place, error) {
	return d.gate.enter(ctx, conn, crowdOf(peer))
}

// Leave releases the place of a connection that does not come to its prologue.
func (d *Door) Leave(place *Place) { d.gate.leave(place, false) }

// Admit runs the prologue with peer, which is at the other end of channel, within AuthTimeout.
// place is what Reserve or Enter returned; if nil, Admit waits for one. After an error the caller must close
// the connection; the client was told the reason if possible. The Authenticator records a
// *Rejection in the error's chain. On success, link has no deadlines.
func (d *Door) Admit(ctx context.Context, link Lines, place *Place, peer Peer, channel Channel) (Identity, error) {
	p := prologue{link: link, stamps: schema.NewStamper()}
	if place == nil {
		var err error
		if place, err = d.Enter(ctx, link, peer); err != nil {
			return Identity{}, errors.Join(err, p.farewell(d.Refusal(err)))
		}
	}
	identity, err := d.exchange(ctx, &p, peer, channel)
	thrown := d.gate.leave(place, err == nil)
	if wrong := (*Rejection)(nil); errors.As(err, &wrong) {
		// The place is already released, so the delay for a wrong answer does not block other
		// logins.
		return Identity{}, errors.Join(err, p.reject(ctx, wrong))
	}
	if thrown == nil || err == nil && errors.Is(thrown, errEvicted) {
		return identity, err // it answered before it was evicted
	}
	return Identity{}, errors.Join(thrown, err, p.farewell(d.Refusal(thrown)))
}

// exchange runs the prologue.
func (d *Door) exchange(ctx context.Context, p *prologue, peer Peer, channel Channel) (_ Identity, err error) {
	auth := d.auth
	if peer.Agent != 0 {
		auth = OpenMode{} // the kernel knows its programs: a key must not give one of them another identity
	}
	if p.offer, err = auth.Offer(ctx, peer, channel); err != nil {
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
			"an agent may have %d connections that have not answered %s, and this agent has as many: answer on those, then connect again", d.gate.prologues, authenticate)
	case errors.Is(reason, errClosing):
		return fault.KernelStopping.New("the kernel is shutting down")
	}
	return fault.AuthBusy.New("too many connections have not answered %s: connect again and answer at once", authenticate)
}

// Farewell tells an admitted connection why it is closed.
func (d *Door) Farewell(link Lines, reason *fault.Fault) error {
	p := prologue{link: link, stamps: schema.NewStamper()}
	return p.farewell(reason)
}

// Close rejects the connections that have not authenticated, and all later ones.
func (d *Door) Close() { d.gate.close() }

// Peer is the other end of a connection, as the transport reports it: a process, or an address.
type Peer struct {
	PID int // 0 if the system does not report it
	UID int // -1 if it is on another machine
	GID int

	Address netip.Addr // of a peer that connected over TLS

	Identity Identity // as proven in the prologue
	// Agent is the hosted agent whose process tree the peer belongs to, if the transport finds that
	// out; 0: none. It overrides what the peer proves.
	Agent int64
}

// Authenticator decides which peers pass the prologue (PROTOCOL 4).
type Authenticator interface {
	// Offer begins the exchange with peer, which is at the other end of channel. It is called from
	// many goroutines. ctx ends when the server shuts down.
	Offer(ctx context.Context, peer Peer, channel Channel) (Offer, error)
}

// Offer is one connection's exchange: the daemon's first frame, and the check of the answer.
type Offer struct {
	// Data is the data of the daemon's first frame, one JSON object with a member `scheme`.
	Data []byte
	// Issued is the time in that frame's metadata, which a signature may be bound to; zero: the
	// time of sending.
	Issued time.Time
	// Verify checks the data of the client's answer and returns the client's identity. Its error is
	// sent to the client, so it should be a *fault.Fault; the connection is closed after it. If
	// nil, this is open mode: any answer is accepted, also one without data or metadata, or a
	// command in place of the reply.
	Verify func(answer []byte) (Identity, error)
	// Hold is called after Verify has refused: the refusal is sent after delay, and then release is
	// called. The connection has already released its place. If nil, the refusal is sent at once.
	Hold func() (delay time.Duration, release func())
	// Done is called when the exchange has ended, with any result: no later answer may count. It
	// may be nil.
	Done func()
}

// Identity is what a client has proven to be.
type Identity struct {
	Key   *AuthorizedKey // its line in authorized_keys; nil in open mode
	Agent int64          // the PID in the kernel; 0: the operator
}

// OpenMode admits every peer that answers (BRIDGE 4.2.5): the directory's permissions protect the
// socket.
type OpenMode struct{}

// Offer implements Authenticator.
func (OpenMode) Offer(context.Context, Peer, Channel) (Offer, error) {
	return Offer{Data: []byte(`{"scheme":"none"}`)}, nil
}
