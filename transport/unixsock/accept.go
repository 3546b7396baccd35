package unixsock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Pauses of the accept loop after errors, doubling from the first to the last. The usual error is that no file
// descriptor is free, until connections end.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = 250 * time.Millisecond
)

// accept accepts connections from e until ctx ends. It returns an error if another goroutine closes the listener. It
// waits only for connections: everything that a peer can delay runs on the connection's own goroutine.
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
		case exhausted(err) && s.reserve.release():
			continue
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

// receive identifies the peer of nc and starts to serve it, or refuses it. A refused connection is not counted.
func (s *Server) receive(ctx context.Context, e Endpoint, nc net.Conn) {
	if agent, ok := s.agents.flooder(nc); ok {
		s.failed(agent)
		s.close(nc)
		return
	}
	// The socket's mode keeps other users out, except on systems that ignore it.
	peer, err := s.identify(nc)
	if err != nil {
		s.unknown.warn(s.config.Log, "connection refused", "uid", peer.UID, "pid", peer.PID, "error", err)
		s.close(nc)
		return
	}
	c := &connection{nc: nc, peer: peer, socket: e.Socket}
	if c.link, err = newLink(e, nc); err == nil && peer.Agent != 0 {
		err = s.receiveAgent(c)
	}
	if err != nil {
		s.refuse(c, e, err)
		return
	}
	s.remember(c.link)
	s.tasks.Go(func() { s.serveConnection(ctx, c) })
}

// connection is an accepted connection.
type connection struct {
	nc     net.Conn
	link   *Conn
	peer   access.Peer
	socket string        // the endpoint's name
	place  *access.Place // for the prologue; nil: an operator's connection that has not got one yet
	agent  int64         // agent whose connections count it; 0: the operator
}

// identify returns the peer of nc. It needs free descriptors.
func (s *Server) identify(nc net.Conn) (access.Peer, error) {
	peer, err := s.config.Identify(nc)
	if err != nil && exhausted(err) && s.reserve.release() {
		return s.config.Identify(nc)
	}
	return peer, err
}

func newLink(e Endpoint, nc net.Conn) (*Conn, error) {
	socket, ok := nc.(stream)
	if !ok {
		return nil, fmt.Errorf("%T is not a socket", nc)
	}
	return NewConn(socket, e.Dialect, e.MaxLine)
}

// receiveAgent counts a connection of an agent and gets its place for the prologue, or returns why it is refused.
func (s *Server) receiveAgent(c *connection) (err error) {
	if !s.reserve.full() {
		return errAgents
	}
	if err := s.agents.enter(c.peer.Agent); err != nil {
		return err
	}
	if c.place, err = s.door.Reserve(c.link, c.peer); err != nil {
		s.agents.leave(c.peer.Agent)
		return err
	}
	c.agent = c.peer.Agent
	return nil
}

// refuse closes a connection that is not admitted, and sends the reason if that does not block.
func (s *Server) refuse(c *connection, e Endpoint, reason error) {
	defer s.close(c.nc)
	if c.link == nil {
		s.config.Log.Warn("connection refused", "pid", c.peer.PID, "error", reason)
		return
	}
	n := s.failed(c.peer.Agent)
	if n > floodPerSecond {
		s.agents.flood(c.peer.PID, c.peer.Agent)
	}
	if n > answeredPerSecond {
		return
	}
	if n == 1 {
		s.config.Log.Warn("connections of an agent are refused", "agent", c.peer.Agent, "pid", c.peer.PID, "error", reason)
	}
	st := schema.NewStamper().Next(time.Now())
	frame := schema.AppendError(nil, &schema.Message{Dialect: e.Dialect}, s.refusal(reason), &st)
	_, _ = c.link.TryWrite(frame) // fails if the peer has closed
}

// failed counts a failed connection of an agent, and reports a flood. It returns the number of failed ones in this
// second.
func (s *Server) failed(agent int64) int {
	n := s.agents.failed(agent)
	if n == floodPerSecond && s.config.Flood != nil {
		s.tasks.Go(func() { s.config.Flood(agent) })
	}
	return n
}

// refusal returns the error for a client whose connection is refused for reason.
func (s *Server) refusal(reason error) *fault.Fault {
	switch {
	case errors.Is(reason, errConnections):
		return fault.ConnectionTooMany.New("an agent may have %d connections, and this one has as many: close one, then connect again", s.config.Bounds.Connections)
	case errors.Is(reason, errAgents):
		return fault.ConnectionTooMany.New("the kernel has no more connections for agents: use one that is open, or connect again later")
	}
	return s.door.Refusal(reason)
}

// serveConnection runs the prologue of a connection and calls the handler, on a goroutine of its own.
func (s *Server) serveConnection(ctx context.Context, c *connection) {
	done := sync.OnceFunc(func() { s.forget(c) })
	defer func() {
		// A panic in one connection's handler does not end the others.
		if failure := recover(); failure != nil {
			s.config.Log.Error("connection handler panicked", "panic", failure, "stack", string(debug.Stack()))
			done()
		}
	}()
	identity, err := s.door.Admit(ctx, c.link, c.place, c.peer, access.Local{Socket: c.socket, PID: c.peer.PID, UID: c.peer.UID})
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
	case errors.As(err, new(*access.Rejection)): // the Authenticator has recorded it
		s.config.Log.Debug("connection not authenticated", "pid", c.peer.PID, "error", err)
	default:
		s.unknown.warn(s.config.Log, "connection not authenticated", "pid", c.peer.PID, "error", err)
	}
}

// countLogin counts a connection for the agent that its key belongs to.
func (s *Server) countLogin(c *connection, agent int64) error {
	if _, refused := s.Count(agent); refused != nil {
		return errors.Join(refused, s.door.Farewell(c.link, refused))
	}
	c.agent = agent
	return nil
}

// Count counts a connection of an agent that logged in with a key, also one of another transport. It returns the function
// that ends the count, or why the connection has to be refused.
func (s *Server) Count(agent int64) (leave func(), refused *fault.Fault) {
	if err := s.agents.enter(agent); err != nil {
		return nil, s.refusal(err)
	}
	return func() { s.agents.leave(agent) }, nil
}

// sampledPerSecond is the number of lines in a second that a sampled log writes.
const sampledPerSecond = 10

// sampled logs messages that any process can cause at any rate: the first ones of each second, and the number of the
// others.
type sampled struct {
	mu      sync.Mutex
	since   time.Time
	said    int
	skipped int
}

func (s *sampled) warn(log *slog.Logger, text string, attrs ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.since) >= time.Second {
		if s.skipped > 0 {
			log.Warn("similar messages were suppressed", "lines", s.skipped)
		}
		s.since, s.said, s.skipped = now, 0, 0
	}
	if s.said == sampledPerSecond {
		s.skipped++
		return
	}
	s.said++
	log.Warn(text, attrs...)
}
