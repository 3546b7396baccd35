package tlssock

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime/debug"
	"sync"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Bounds of connections. What is over one of the first two is closed without a word.
const (
	// MaxWaiting is how many connections may be open that have not logged in. access.AuthWaiting of them are in their
	// handshake or prologue, and the others wait for that.
	MaxWaiting = 256
	// NetworkWaiting is how many of them may be of one access.Network.
	NetworkWaiting = 16
	// MaxConnections is how many may be logged in.
	MaxConnections = 512
)

// Handler serves one connection that has logged in. It is called on a goroutine of its own. The connection is closed
// when done is called, on any goroutine, or when the handler panics. ctx ends when the server begins to shut down; the
// handler then finishes calls in flight and accepts no others.
type Handler func(ctx context.Context, link *Link, peer access.Peer, done func())

// ServerConfig configures a Server. All members are required.
type ServerConfig struct {
	Listener      net.Listener // of TCP; the Server closes it
	Key           *access.HostKey
	Authenticator access.Authenticator
	Handler       Handler
	// Count counts a connection of an agent, or returns why it is refused. leave is called at its end.
	Count   func(agent int64) (leave func(), refused *fault.Fault)
	MaxLine int // bytes, once logged in; before, a line has schema.MaxLine
	Log     *slog.Logger
}

// Server admits clients: it accepts, makes the session, runs the prologue, and calls the Handler.
type Server struct {
	config  ServerConfig
	session *tls.Config
	door    *access.Door
	tasks   sync.WaitGroup // connections

	quit    func()        // closes stop
	stop    chan struct{} // closed when the shutdown begins
	expire  func()        // closes expired
	expired chan struct{} // closed when the time of the handlers is over
	done    chan struct{} // closed when Serve returns

	mu      sync.Mutex
	conns   map[*connection]struct{} // nil when the time of the handlers is over
	waiting map[netip.Addr]int       // connections that have not logged in, by network
	inside  int                      // connections that have
}

// NewServer returns a Server; its Serve has to be called.
func NewServer(config ServerConfig) (*Server, error) {
	if config.Authenticator == nil {
		return nil, errors.New("listen for TLS: without keys everybody would be let in")
	}
	certificate, err := config.Key.Certificate("pwos")
	if err != nil {
		return nil, fmt.Errorf("listen for TLS: %w", err)
	}
	s := &Server{
		config:  config,
		session: &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{certificate}, SessionTicketsDisabled: true},
		door:    access.NewDoor(config.Authenticator, 1), // no peer is an agent before it has logged in
		stop:    make(chan struct{}),
		expired: make(chan struct{}),
		done:    make(chan struct{}),
		conns:   make(map[*connection]struct{}),
		waiting: make(map[netip.Addr]int),
	}
	s.quit = sync.OnceFunc(func() { close(s.stop) })
	s.expire = sync.OnceFunc(func() { close(s.expired) })
	return s, nil
}

// Serve serves until Shutdown, or until the listener fails, whose error it returns. It returns after every connection
// and every goroutine has ended. It is called once.
func (s *Server) Serve() error {
	defer close(s.done)
	work, windDown := context.WithCancel(context.Background())
	defer windDown()
	broken := make(chan error, 1)
	s.tasks.Go(func() { broken <- s.accept(work) })
	var err error
	select {
	case <-s.stop:
	case err = <-broken:
	}
	windDown() // first: to the accept loop, a closed listener is an error otherwise
	if closeErr := s.config.Listener.Close(); closeErr != nil && !errors.Is(closeErr, net.ErrClosed) {
		err = errors.Join(err, fmt.Errorf("close listener: %w", closeErr))
	}
	s.door.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.tasks.Wait()
	}()
	select {
	case <-ended:
	case <-s.expired:
	}
	s.mu.Lock()
	for c := range s.conns {
		c.abort()
	}
	s.conns = nil
	s.mu.Unlock()
	<-ended
	return err
}

// Shutdown stops accepting, closes connections that have not logged in, and waits for the handlers. If ctx ends first,
// it closes their connections and returns ctx's error; Serve then returns as soon as the handlers do. Otherwise it
// returns nil after Serve has returned.
func (s *Server) Shutdown(ctx context.Context) error {
	s.quit()
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		s.expire()
		return context.Cause(ctx)
	}
}

// Pauses of the accept loop after errors, doubling from the first to the last.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = 250 * time.Millisecond
)

// accept accepts connections until ctx ends.
func (s *Server) accept(ctx context.Context) error {
	pause := time.Duration(0)
	for {
		stream, err := s.config.Listener.Accept()
		switch {
		case err == nil:
			pause = 0
			s.receive(ctx, stream)
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

// connection is an accepted connection.
type connection struct {
	stream net.Conn
	peer   access.Peer
	link   *Link  // nil before the login; guarded by Server.mu
	leave  func() // Count's; nil: not counted
}

// abort closes c at once. The caller holds Server.mu.
func (c *connection) abort() {
	if c.link != nil {
		c.link.abort()
		return
	}
	_ = c.stream.Close() // fails only if it is closed
}

// receive starts to serve a connection, or closes it.
func (s *Server) receive(ctx context.Context, stream net.Conn) {
	c := &connection{stream: stream, peer: access.Peer{UID: -1, Address: addressOf(stream)}}
	if !s.enter(c) {
		s.config.Log.Debug("connection over the bound closed", "address", c.peer.Address)
		_ = stream.Close() // nothing was sent on it
		return
	}
	s.tasks.Go(func() { s.handle(ctx, c) })
}

func addressOf(stream net.Conn) netip.Addr {
	from, err := netip.ParseAddrPort(stream.RemoteAddr().String())
	if err != nil {
		return netip.IPv6Unspecified() // not TCP
	}
	return from.Addr().Unmap()
}

// enter counts a connection that has not logged in, unless there are too many.
func (s *Server) enter(c *connection) bool {
	network := access.Network(c.peer.Address)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil || s.waiting[network] >= NetworkWaiting || len(s.conns)-s.inside >= MaxWaiting {
		return false
	}
	s.tasks.Add(1)
	s.conns[c] = struct{}{}
	s.waiting[network]++
	return true
}

// passed counts a connection as logged in, unless there are too many.
func (s *Server) passed(c *connection, link *Link) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inside >= MaxConnections {
		return false
	}
	s.answered(c)
	s.inside++
	c.link = link
	if s.conns == nil {
		link.abort() // the time of the handlers is over
	}
	return true
}

// answered counts a connection no longer as one that has not logged in. The caller holds mu.
func (s *Server) answered(c *connection) {
	network := access.Network(c.peer.Address)
	if s.waiting[network]--; s.waiting[network] == 0 {
		delete(s.waiting, network)
	}
}

// forget ends the count of a connection, which is closed.
func (s *Server) forget(c *connection) {
	defer s.tasks.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	if c.link == nil {
		s.answered(c)
	} else {
		s.inside--
	}
	if c.leave != nil {
		c.leave()
	}
}

// handle makes the session of a connection, runs the prologue and calls the handler, on a goroutine of its own.
func (s *Server) handle(ctx context.Context, c *connection) {
	link, err := s.admit(ctx, c)
	if err != nil {
		s.config.Log.Debug("connection not authenticated", "address", c.peer.Address, "error", err)
		_ = c.stream.Close() // fails only if it is closed
		s.forget(c)
		return
	}
	done := func() { _ = link.Close() } // never fails; it calls forget
	defer func() {
		// A panic in one connection's handler does not end the others.
		if failure := recover(); failure != nil {
			s.config.Log.Error("connection handler panicked", "panic", failure, "stack", string(debug.Stack()))
			done()
		}
	}()
	s.config.Handler(ctx, link, c.peer, done)
}

// admit returns the link of a connection that has logged in.
func (s *Server) admit(ctx context.Context, c *connection) (*Link, error) {
	session := tls.Server(whole{c.stream}, s.session)
	place, err := s.door.Enter(ctx, session, c.peer)
	if err != nil {
		return nil, err
	}
	channel, err := handshake(ctx, session)
	if err != nil {
		s.door.Leave(place)
		return nil, fmt.Errorf("TLS: %w", err)
	}
	lines := prologue{session, schema.NewLineReader(session, schema.MaxLine)}
	if c.peer.Identity, err = s.door.Admit(ctx, lines, place, c.peer, channel); err != nil {
		return nil, err
	}
	if c.peer.Identity.Key == nil {
		return nil, errors.New("the login has no key")
	}
	refuse := func(why *fault.Fault) (*Link, error) { return nil, errors.Join(why, s.door.Farewell(lines, why)) }
	if agent := c.peer.Identity.Agent; agent != 0 {
		var refused *fault.Fault
		if c.leave, refused = s.config.Count(agent); refused != nil {
			return refuse(refused)
		}
	}
	lines.Widen(s.config.MaxLine)
	link := newLink(session, c.stream, lines.LineReader, s.config.MaxLine, func() { s.forget(c) })
	if !s.passed(c, link) {
		return refuse(fault.ConnectionTooMany.New("the kernel has %d connections over TLS, and no more: use one that is open, or connect again later", MaxConnections))
	}
	return link, nil
}
