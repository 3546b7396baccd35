package unixsock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// How long the accept loop rests after an error, doubling from the first to the last, so that it never spins. The usual
// error is that file descriptors have run out; it passes when connections end.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = time.Second
)

// accept takes in connections from e until ctx ends. It returns an error where the listener was closed by somebody else.
func (s *Server) accept(ctx context.Context, e Endpoint) error {
	pause := time.Duration(0)
	for {
		nc, err := e.Listener.Accept()
		switch {
		case err == nil:
			pause = 0
			s.receive(ctx, e, nc)
			continue
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept connection: %w", err)
		}
		pause = min(max(firstPause, 2*pause), lastPause)
		s.config.Log.Warn("accept connection", "error", err, "retry_in", pause)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// receive looks who nc is, waits for a place in the gate and starts to serve it. A stranger takes up no place.
func (s *Server) receive(ctx context.Context, e Endpoint, nc net.Conn) {
	// The socket's mode keeps other users out already; on systems that ignore it, this alone does.
	peer, err := s.config.Identify(nc)
	if err != nil {
		s.config.Log.Warn("connection refused", "uid", peer.UID, "pid", peer.PID, "error", err)
		s.close(nc)
		return
	}
	conn, v, err := s.usher(ctx, e, nc, peer)
	if err != nil {
		s.config.Log.Debug("connection not received", "error", err)
		s.close(nc)
		return
	}
	s.remember(nc)
	s.tasks.Go(func() { s.serve(ctx, nc, conn, v, peer, e.Socket) })
}

// usher waits until the gate has a place. That the accept loop waits with it is the point: those behind stay in the
// system's listen queue, where they cost nothing.
func (s *Server) usher(ctx context.Context, e Endpoint, nc net.Conn, peer Peer) (*Conn, *visitor, error) {
	socket, ok := nc.(stream)
	if !ok {
		return nil, nil, fmt.Errorf("%T is no socket", nc)
	}
	conn, err := NewConn(socket, e.Dialect, e.MaxLine)
	if err != nil {
		return nil, nil, err
	}
	v, err := s.gate.enter(ctx, conn, crowdOf(peer))
	return conn, v, err
}

// crowdOf is what the gate takes for one process. All that a hosted program starts are: else it could fork itself the places
// of everybody else.
func crowdOf(p Peer) int {
	if p.Agent != 0 {
		return -int(p.Agent)
	}
	return p.PID
}
