package unixsock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"

	"github.com/promptware-os/pwos/schema"
)

// serve leads one connection through the prologue to the handler, on the goroutine that is the connection's own from
// here to its end.
func (s *Server) serve(ctx context.Context, nc net.Conn, conn *Conn, v *visitor, peer Peer, socket string) {
	defer s.forget(nc)
	defer func() {
		// A fault in one connection's handler is no reason to end every other's.
		if fault := recover(); fault != nil {
			s.config.Log.Error("connection handler panicked", "panic", fault, "stack", string(debug.Stack()))
		}
	}()
	identity, err := s.admit(ctx, conn, v, peer, socket)
	switch {
	case err == nil:
		peer.Identity = identity
		s.config.Handler(ctx, conn, peer)
	case errors.Is(err, io.EOF):
		s.config.Log.Debug("connection closed before it authenticated", "pid", peer.PID)
	case errors.As(err, new(*rejection)): // which is for the Authenticator to record
		s.config.Log.Debug("connection not authenticated", "pid", peer.PID, "error", err)
	default:
		s.config.Log.Info("connection not authenticated", "pid", peer.PID, "error", err)
	}
}

// admit runs the prologue and gives back the place in the gate. Its error is why the connection has to be closed; what
// could be said to the client about it has been said.
func (s *Server) admit(ctx context.Context, link lines, v *visitor, peer Peer, socket string) (Identity, error) {
	p := prologue{link: link, stamps: schema.NewStamper()}
	identity, err := s.exchange(ctx, &p, peer, socket)
	thrown := s.gate.leave(v, err == nil)
	if wrong := (*rejection)(nil); errors.As(err, &wrong) {
		// After the place was given back: whoever is held back for a wrong answer keeps nobody waiting.
		return Identity{}, errors.Join(err, p.reject(ctx, wrong))
	}
	if thrown == nil || err == nil && errors.Is(thrown, errEvicted) {
		return identity, err // its answer came just in time
	}
	return Identity{}, errors.Join(thrown, err, p.farewell(thrown))
}

// exchange runs the prologue.
func (s *Server) exchange(ctx context.Context, p *prologue, peer Peer, socket string) (_ Identity, err error) {
	door := s.config.Authenticator
	if peer.Agent != 0 {
		door = OpenMode{} // the kernel knows its own programs, and no key makes one of them anybody else
	}
	if p.offer, err = door.Offer(ctx, peer, socket); err != nil {
		return Identity{}, fmt.Errorf("make authentication offer: %w", err)
	}
	if p.offer.Done != nil {
		defer p.offer.Done()
	}
	return p.run()
}
