package unixsock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"

	"github.com/promptware-os/pwos/schema"
)

// serve leads one connection through the prologue to the handler, on a goroutine of its own.
func (s *Server) serve(ctx context.Context, c *connection) {
	done := sync.OnceFunc(func() { s.forget(c) })
	defer func() {
		// A failure in one connection's handler is no reason to end every other's.
		if failure := recover(); failure != nil {
			s.config.Log.Error("connection handler panicked", "panic", failure, "stack", string(debug.Stack()))
			done()
		}
	}()
	identity, err := s.admit(ctx, c.link, c.place, c.peer, c.socket)
	if err == nil && c.agent == 0 && identity.Agent != 0 {
		err = s.countLogin(c, identity.Agent)
	}
	if err != nil && c.peer.Agent != 0 {
		s.failed(c.peer.Agent)
	}
	if err == nil {
		c.peer.Identity = identity
		s.config.Handler(ctx, c.link, c.peer, done)
		return
	}
	defer done()
	switch {
	case errors.Is(err, io.EOF):
		s.config.Log.Debug("connection closed before it authenticated", "pid", c.peer.PID)
	case errors.As(err, new(*rejection)): // which is for the Authenticator to record
		s.config.Log.Debug("connection not authenticated", "pid", c.peer.PID, "error", err)
	default:
		s.unknown.warn(s.config.Log, "connection not authenticated", "pid", c.peer.PID, "error", err)
	}
}

// countLogin counts a connection that a key has made an agent's among that agent's.
func (s *Server) countLogin(c *connection, agent int64) error {
	if err := s.residents.enter(agent); err != nil {
		p := prologue{link: c.link, stamps: schema.NewStamper()}
		return errors.Join(err, p.farewell(s.refusal(err)))
	}
	c.agent = agent
	return nil
}

// admit runs the prologue and gives back the place in the gate; v is nil where it has still to take one. Its error is why
// the connection has to be closed; what could be said to the client about it has been said.
func (s *Server) admit(ctx context.Context, link lines, v *visitor, peer Peer, socket string) (Identity, error) {
	p := prologue{link: link, stamps: schema.NewStamper()}
	if v == nil {
		var err error
		if v, err = s.gate.enter(ctx, link, crowdOf(peer)); err != nil {
			return Identity{}, errors.Join(err, p.farewell(s.refusal(err)))
		}
	}
	identity, err := s.exchange(ctx, &p, peer, socket)
	thrown := s.gate.leave(v, err == nil)
	if wrong := (*rejection)(nil); errors.As(err, &wrong) {
		// After the place was given back: whoever is held back for a wrong answer keeps nobody waiting.
		return Identity{}, errors.Join(err, p.reject(ctx, wrong))
	}
	if thrown == nil || err == nil && errors.Is(thrown, errEvicted) {
		return identity, err // its answer came just in time
	}
	return Identity{}, errors.Join(thrown, err, p.farewell(s.refusal(thrown)))
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
