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

// Handler serves one authenticated connection. It is called on a goroutine of the Server's, which ends when it returns; the connection
// is closed when done is called, on any goroutine, or when the handler panics. ctx ends when the server begins to shut down: what was
// begun is finished then.
type Handler func(ctx context.Context, conn *Conn, peer access.Peer, done func())

// Endpoint is a listener, and the dialect of its connections.
type Endpoint struct {
	Listener net.Listener   // gives Unix sockets; the Server closes it
	Dialect  schema.Dialect // of the prologue, and of answers to frames that show none
	MaxLine  int            // bytes
	Socket   string         // the socket's name, for the Authenticator; see access.SocketName
}

// ServerConfig is what a Server needs. Handler and Endpoints are required.
type ServerConfig struct {
	Endpoints     []Endpoint
	Handler       Handler
	Authenticator access.Authenticator                // access.OpenMode if nil
	Log           *slog.Logger                        // nowhere if nil
	Identify      func(net.Conn) (access.Peer, error) // PeerOf if nil
	Bounds        Bounds                              // each the default's where zero
	Flood         func(agent int64)                   // called on a goroutine of the Server's for each second in which an agent has a hundred failed connections; may be nil
}

// Server admits clients: it accepts, identifies the peer, runs the prologue, and calls the Handler.
type Server struct {
	config    ServerConfig
	door      *access.Door
	residents *residents
	reserve   reserve
	unknown   sampled        // log lines about peers that are not admitted
	tasks     sync.WaitGroup // goroutines, and connections that are remembered

	quit  func()        // closes stop
	stop  chan struct{} // the shutdown begins
	rush  func()        // closes hurry
	hurry chan struct{} // handlers have had their time
	done  chan struct{} // Serve has returned

	mu    sync.Mutex
	conns map[io.Closer]struct{} // being served; nil when handlers have had their time
}

// NewServer returns a Server that is yet to Serve.
func NewServer(config ServerConfig) *Server {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if config.Identify == nil {
		config.Identify = PeerOf
	}
	config.Bounds = config.Bounds.orDefault()
	s := &Server{
		config:    config,
		door:      access.NewDoor(config.Authenticator, config.Bounds.Prologues),
		residents: newResidents(config.Bounds),
		stop:      make(chan struct{}),
		hurry:     make(chan struct{}),
		done:      make(chan struct{}),
		conns:     make(map[io.Closer]struct{}),
	}
	s.quit = sync.OnceFunc(func() { close(s.stop) })
	s.rush = sync.OnceFunc(func() { close(s.hurry) })
	return s
}

// Serve serves until Shutdown, until ctx ends, which leaves handlers no time, or until a listener breaks, and returns
// when every connection and every goroutine has ended, with the errors of the listeners. It is called once.
func (s *Server) Serve(ctx context.Context) error {
	defer close(s.done)
	s.reserve.refill() // if it fails, there is nothing to hold back
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
		s.rush()
	case err = <-broken:
	}

	// In this order: accept loops take a closed listener for the end only when the end has begun.
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

// await returns when every connection and every goroutine has ended; when time is up it closes the connections that are still served.
func (s *Server) await(ctx context.Context) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.tasks.Wait()
	}()
	select {
	case <-ended:
	case <-s.hurry:
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

// Shutdown stops accepting, closes connections that have not authenticated, and waits for the
// handlers; if ctx ends first, their connections are closed. It returns nil when Serve has
// returned, or ctx's error, and then Serve returns as soon as the handlers have noticed.
func (s *Server) Shutdown(ctx context.Context) error {
	s.quit()
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		s.rush()
		return context.Cause(ctx)
	}
}

// remember notes a connection that await waits for and may have to close: a handler can be stuck in a read, which only that ends.
func (s *Server) remember(conn io.Closer) {
	s.tasks.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		s.close(conn) // it came too late; its prologue will see
		return
	}
	s.conns[conn] = struct{}{}
}

// forget closes a connection that has been served.
func (s *Server) forget(c *connection) {
	defer s.tasks.Done()
	c.link.discard()
	s.mu.Lock()
	delete(s.conns, c.link)
	s.close(c.link.Link()) // whose handler wants to be told nothing more
	s.mu.Unlock()
	if c.agent != 0 {
		s.residents.leave(c.agent)
	}
	s.reserve.refill()
}

// close closes conn, which its handler may have done before.
func (s *Server) close(conn io.Closer) {
	if err := conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		s.config.Log.Warn("close connection", "error", err)
	}
}
