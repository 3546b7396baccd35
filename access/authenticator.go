package access

import (
	"context"
	"time"
)

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
	// Verify judges the data of the client's answer and returns whom it proves the client to be. Its error is told to the
	// client, so it is best a *fault.Fault; the connection is closed after it. Nil makes this open mode: any answer will
	// do, one without data or metadata too, and a command in place of the reply.
	Verify func(answer []byte) (Identity, error)
	// Hold is asked where Verify refused: the refusal is sent after delay, and then release is called. The connection has
	// no place among those who wait any more by then. Nil: it is sent at once.
	Hold func() (delay time.Duration, release func())
	// Done is called when the exchange is over, however it went: nothing that comes later may be taken for an answer. Nil
	// where nobody wants to know.
	Done func()
}

// Identity is who a client has proven to be.
type Identity struct {
	Key   *AuthorizedKey // its line in authorized_keys; nil in open mode
	Agent int64          // the process of the kernel that it is; 0: the operator
}

// OpenMode lets in everybody who answers (BRIDGE 4.2.5): the directory's permissions have decided before.
type OpenMode struct{}

// Offer implements Authenticator.
func (OpenMode) Offer(context.Context, Peer, string) (Offer, error) {
	return Offer{Data: []byte(`{"scheme":"none"}`)}, nil
}
