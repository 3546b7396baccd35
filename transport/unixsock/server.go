package unixsock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema"
)

// Handler serves one authenticated connection. It is called on a goroutine of its own. The connection is closed when
// done is called, on any goroutine, or when the handler panics. ctx ends when the server begins to shut down; the
// handler then finishes calls in flight and accepts no others.
type Handler func(ctx context.Context, conn *Conn, peer access.Peer, done func())

// Endpoint is a listener, and the dialect of its connections.
type Endpoint struct {
	Listener net.Listener   // of Unix sockets; the Server closes it
	Dialect  schema.Dialect // of the prologue, and of answers to frames without one
	MaxLine  int            // bytes
	Socket   string         // the socket's name, for the Authenticator; see access.SocketName
}

// ServerConfig configures a Server. Handler and Endpoints are required.
type ServerConfig struct {
	Endpoints     []Endpoint
	Handler       Handler
	Authenticator access.Authenticator                // access.OpenMode if nil
	Log           *slog.Logger                        // nowhere if nil
	Identify      func(net.Conn) (access.Peer, error) // PeerOf if nil
	Bounds        Bounds                              // each the default if zero
	Flood         func(agent int64)                   // called on a goroutine of its own for each second in which an agent floods; may be nil
}

// Server admits clients: it accepts, identifies the peer, runs the prologue, and calls the Handler.
type Server struct {
	config  ServerConfig
	door    *access.Door
	agents  *agentConns
	reserve reserve
	unknown sampled        // log lines about peers that are not admitted
	tasks   sync.WaitGroup // goroutines, and connections in conns

	quit    func()        // closes stop
	stop    chan struct{} // closed when the shutdown begins
	expire  func()        // closes expired
	expired chan struct{} // closed when the time of the handlers is over
	done    chan struct{} // closed when Serve returns

	mu    sync.Mutex
	conns map[io.Closer]struct{} // being served; nil when the time of the handlers is over
}

// NewServer returns a Server; its Serve has to be called.
func NewServer(config ServerConfig) *Server {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if config.Identify == nil {
		config.Identify = PeerOf
	}
	config.Bounds = config.Bounds.orDefault()
	s := &Server{
		config:  config,
		door:    access.NewDoor(config.Authenticator, config.Bounds.Prologues),
		agents:  newAgentConns(config.Bounds),
		stop:    make(chan struct{}),
		expired: make(chan struct{}),
		done:    make(chan struct{}),
		conns:   make(map[io.Closer]struct{}),
	}
	s.quit = sync.OnceFunc(func() { close(s.stop) })
	s.expire = sync.OnceFunc(func() { close(s.expired) })
	return s
}

// Serve serves until Shutdown, until ctx ends, which closes connections at once, or until a listener fails. It returns
// after every connection and every goroutine has ended, with the errors of the listeners. It is called once.
func (s *Server) Serve(ctx context.Context) error {
	defer close(s.done)
	s.reserve.refill() // if descriptors are exhausted, the reserve stays incomplete
	defer s.reserve.release()
	work, windDown := context.WithCancel(ctx)
	defer windDown()

	broken := make(chan error, len(s.config.Endpoints))
	for _, e := range s.config.Endpoints {
		s.tasks.Go(func() {
			if err := s.accept(work, e); err != nil {
				broken <- err
			}
		})
	}
	var err error
	select {
	case <-s.stop:
	case <-ctx.Done():
		s.expire()
	case err = <-broken:
	}

	// In this order: to an accept loop, a closed listener is an error unless the shutdown has begun.
	windDown()
	for _, e := range s.config.Endpoints {
		if closeErr := e.Listener.Close(); closeErr != nil && !errors.Is(closeErr, net.ErrClosed) {
			err = errors.Join(err, fmt.Errorf("close listener: %w", closeErr))
		}
	}
	s.door.Close()
	s.await(ctx)
	return err
}

// await returns when every connection and every goroutine has ended. When the time of the handlers is over, it closes
// their connections.
func (s *Server) await(ctx context.Context) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.tasks.Wait()
	}()
	select {
	case <-ended:
	case <-s.expired:
	case <-ctx.Done():
	}
	s.mu.Lock()
	for conn := range s.conns {
		s.close(conn)
	}
	s.conns = nil
	s.mu.Unlock()
	<-ended
}

// Shutdown stops accepting, closes connections that have not authenticated, and waits for the handlers. If ctx ends
// first, it closes their connections and returns ctx's error; Serve then returns as soon as the handlers do. Otherwise
// it returns nil after Serve has returned.
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

// remember adds a connection to conns: await waits for it, and closes it if necessary, since a handler may be blocked
// in a read.
func (s *Server) remember(conn io.Closer) {
	s.tasks.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		s.close(conn) // after the end; the prologue fails
		return
	}
	s.conns[conn] = struct{}{}
}

// forget closes a connection and removes it from conns.
func (s *Server) forget(c *connection) {
	defer s.tasks.Done()
	c.link.discard()
	s.mu.Lock()
	delete(s.conns, c.link)
	s.close(c.link.Link()) // without an event, since the handler has called done
	s.mu.Unlock()
	if c.agent != 0 {
		s.agents.leave(c.agent)
	}
	s.reserve.refill()
}

// close closes conn, which its handler may have closed before.
func (s *Server) close(conn io.Closer) {
	if err := conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		s.config.Log.Warn("close connection", "error", err)
	}
}
