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
func (s *Server) serve(ctx context.Context, nc net.Conn, conn *Conn, v *visitor, peer Peer) {
	defer s.forget(nc)
	defer func() {
		// A fault in one connection's handler is no reason to end every other's.
		if fault := recover(); fault != nil {
			s.config.Log.Error("connection handler panicked", "panic", fault, "stack", string(debug.Stack()))
		}
	}()
	key, err := s.admit(conn, v, peer)
	switch {
	case err == nil:
		peer.Key = key
		s.config.Handler(ctx, conn, peer)
	case errors.Is(err, io.EOF):
		s.config.Log.Debug("connection closed before it authenticated", "pid", peer.PID)
	default:
		s.config.Log.Info("connection not authenticated", "pid", peer.PID, "error", err)
	}
}

// admit runs the prologue and gives back the place in the gate. Its error is why the connection has to be closed; what
// could be said to the client about it has been said.
func (s *Server) admit(link lines, v *visitor, peer Peer) (key string, err error) {
	p := prologue{link: link, stamps: schema.NewStamper()}
	defer func() {
		thrown := s.gate.leave(v, err == nil)
		if thrown == nil || err == nil && errors.Is(thrown, errEvicted) {
			return // its answer came just in time
		}
		err = errors.Join(thrown, err, p.farewell(thrown))
	}()
	p.offer, err = s.config.Authenticator.Offer(peer)
	if err != nil {
		return "", fmt.Errorf("make authentication offer: %w", err)
	}
	return p.run()
}
