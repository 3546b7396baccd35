package egress

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/effect/price"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Sockets has the sockets of an agent, created inside its network namespace. Each of them may be nil.
type Sockets struct {
	Proxy     net.Listener            // 127.0.0.1:PORT: an HTTP proxy
	DNS       net.PacketConn          // 127.0.0.1:53
	DNSTCP    net.Listener            // 127.0.0.1:53
	Relay     []net.Listener          // all addresses, on ports 80, 443 and granted ports; LocalAddr of a connection identifies the host
	Upstreams map[string]net.Listener // by name
	Locals    []net.Listener          // localhost: a connection's port is that of a service on this machine's loopback
	// Dialer connects to the agent's own ports on its localhost, for those that are published.
	Dialer interface {
		Dial(ctx context.Context, port uint16) (net.Conn, error)
		Close() error
	}
}

// Config has the settings of a Server.
type Config struct {
	Tokens kernel.Tokens
	Tick   func() int64
	// Dial connects to an allowed host, with the address rules of Http.Fetch.
	Dial func(context.Context, fetch.Endpoint) (net.Conn, error)
	// Journal makes a call of the kernel's own for pid: it decides the call, calls run after the intent is on disk, and
	// returns after the outcome of run is on disk. Its error is a *fault.Fault.
	// DialLocal connects to a port of this machine's loopback; nil means that it does so.
	DialLocal func(ctx context.Context, port uint16) (net.Conn, error)
	Maker     Maker // nil: nothing is known of who makes connections
	Journal   func(ctx context.Context, pid int64, request schema.Request, run func(context.Context) ([]byte, error)) ([]byte, error)
	Upstreams []*Upstream
	Prices    price.Table          // configured prices of models
	Metered   func(pid int64) bool // reports whether a process has a budget of tokens or dollars; nil: no process has one
	Authority *Authority           // signs certificates for intercepted upstreams; nil if there are none
	Limits    Limits
	Log       *slog.Logger
}

// Limits bounds the resources that agents can use; 0 means the default.
type Limits struct {
	Each  int           // connections of one agent: 128
	All   int           // connections of all agents: 1,024
	Idle  time.Duration // without a byte in either direction: 10 m
	Hello time.Duration // until a header or a TLS ClientHello is complete: 10 s
	Names int           // assigned names of one agent: 8,192
}

func (l Limits) orDefault() Limits {
	return Limits{
		Each: cmp.Or(l.Each, 128), All: cmp.Or(l.All, 1024), Idle: cmp.Or(l.Idle, 10*time.Minute),
		Hello: cmp.Or(l.Hello, 10*time.Second), Names: cmp.Or(l.Names, 8192),
	}
}

// Server serves the networks of agents.
type Server struct {
	Config
	total atomic.Int64 // connections of all agents

	mu     sync.Mutex
	agents map[*agent]struct{}
	taken  map[uint16]int // ports of this machine that agents publish
	closed bool

	once     sync.Once
	sweeping sync.WaitGroup
	over     chan struct{} // closed by Close
}

// New returns a server. Close closes it.
func New(c Config) *Server {
	c.Limits = c.Limits.orDefault()
	c.Log = c.Log.With("component", "egress")
	if c.DialLocal == nil {
		c.DialLocal = dialLocal
	}
	if c.Metered == nil {
		c.Metered = func(int64) bool { return false }
	}
	return &Server{Config: c, agents: map[*agent]struct{}{}, taken: map[uint16]int{}, over: make(chan struct{})}
}

// errEnded is the cause of connections that end with their agent.
var errEnded = fault.CallCancelled.New("the agent has ended")

// Own is what only one process has.
type Own struct {
	Upstreams []*Upstream
	Logins    map[string]string // credentials in place of those of upstreams, by the upstream's name
	Published []*Published      // by Listen
}

// Serve serves the sockets of process pid, and what it publishes, until stop is called, and closes them then. stop closes every connection, and returns after all outcomes are journaled and every goroutine has ended. It may be called
// more than once.
func (s *Server) Serve(pid int64, sockets Sockets, own Own) (stop func()) {
	a := &agent{Server: s, pid: pid, own: own, sockets: sockets, names: newNames(s.Limits.Names), asking: make(chan struct{}, maxAsking), open: map[*guarded]struct{}{}}
	a.ctx, a.cancel = context.WithCancelCause(context.Background())
	s.mu.Lock()
	if s.closed {
		a.cancel(errEnded)
	} else {
		s.once.Do(func() { s.sweeping.Go(s.sweep) })
	}
	s.agents[a] = struct{}{}
	s.mu.Unlock()
	a.begin()
	return sync.OnceFunc(func() {
		a.end()
		for _, u := range own.Upstreams {
			u.close()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.agents, a)
	})
}

// Close stops serving all processes. A later Serve serves nothing.
func (s *Server) Close() {
	s.mu.Lock()
	if !s.closed {
		close(s.over)
	}
	s.closed = true
	s.mu.Unlock()
	for _, a := range s.all() {
		a.end()
	}
	s.sweeping.Wait()
	for _, u := range s.Upstreams {
		u.close()
	}
}

func (s *Server) all() []*agent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.agents))
}

// agent is the network of one process.
type agent struct {
	*Server
	pid     int64
	own     Own
	sockets Sockets
	names   *names
	misses  misses
	asking  chan struct{} // semaphore of the requests whose beginning is in memory
	grant   atomic.Pointer[grant]

	ctx    context.Context
	cancel context.CancelCauseFunc
	work   sync.WaitGroup
	once   sync.Once

	conns atomic.Int64 // open
	mu    sync.Mutex
	open  map[*guarded]struct{} // connections that are canceled when the grant no longer allows them
	over  bool                  // no handler may start

	plain   *http.Server // requests to port 80
	plainIn *connQueue
	servers []*http.Server
	taken   map[string]*connQueue // intercepted connections by upstream
}

// begin starts the goroutines.
func (a *agent) begin() {
	a.plainIn = newConnQueue(a.ctx)
	a.plain = a.server(http.HandlerFunc(a.servePlain))
	a.serveHTTP(a.plain, a.plainIn)
	if a.sockets.Proxy != nil {
		a.serveHTTP(a.server(http.HandlerFunc(a.serveProxy)), &limitListener{a.sockets.Proxy, a})
	}
	a.taken = map[string]*connQueue{}
	for _, u := range slices.Concat(a.Config.Upstreams, a.own.Upstreams) {
		listener := a.sockets.Upstreams[u.Name]
		if listener == nil && !u.Intercept {
			continue
		}
		server := a.server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.serveUpstream(u, w, r) }))
		if listener != nil {
			a.serveHTTP(server, &limitListener{listener, a})
		}
		if u.Intercept && a.Authority != nil {
			a.taken[u.Name] = newConnQueue(a.ctx)
			a.serveHTTP(server, a.taken[u.Name])
		}
	}
	for _, l := range a.sockets.Relay {
		a.accept(l, a.serveRelay)
	}
	for _, l := range a.sockets.Locals {
		a.accept(l, a.serveLocal)
	}
	for _, p := range a.own.Published {
		a.work.Go(func() { a.publish(p) })
	}
	if a.sockets.DNS != nil {
		a.work.Go(a.serveDNS)
	}
	if a.sockets.DNSTCP != nil {
		a.accept(a.sockets.DNSTCP, a.serveDNSConn)
	}
	context.AfterFunc(a.ctx, a.closeSockets)
}

// end closes all sockets and connections, and waits for the handlers.
func (a *agent) end() {
	a.cancel(errEnded)
	a.closeSockets()
	a.mu.Lock()
	a.over = true
	a.mu.Unlock()
	a.work.Wait()
}

func (a *agent) closeSockets() {
	a.once.Do(func() {
		closers := []io.Closer{a.sockets.Proxy, a.sockets.DNS, a.sockets.DNSTCP, a.sockets.Dialer}
		lists := [][]net.Listener{a.sockets.Relay, a.sockets.Locals}
		for _, p := range a.own.Published {
			lists = append(lists, p.listeners)
		}
		for _, l := range slices.Concat(lists...) {
			closers = append(closers, l)
		}
		for _, l := range a.sockets.Upstreams {
			closers = append(closers, l)
		}
		for _, c := range closers {
			if c != nil {
				_ = c.Close() // its error changes nothing
			}
		}
		for _, s := range a.servers {
			_ = s.Close()
		}
	})
}

// server returns an HTTP server with limits for an agent's requests.
func (a *agent) server(h http.Handler) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	s := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !a.enter() {
				panic(http.ErrAbortHandler)
			}
			defer a.work.Done()
			h.ServeHTTP(w, r)
		}),
		Protocols: protocols, ReadHeaderTimeout: a.Limits.Hello, IdleTimeout: time.Minute, MaxHeaderBytes: 32 << 10,
		ErrorLog:    log.New(io.Discard, "", 0), // its messages have text from the agent
		BaseContext: func(net.Listener) context.Context { return a.ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			ctx = a.by(ctx, c)
			if to, ok := c.(*bound); ok {
				return context.WithValue(ctx, destinationKey{}, to.to)
			}
			return ctx
		},
	}
	a.servers = append(a.servers, s)
	return s
}

// enter counts a handler, for which end waits. It returns false after end.
func (a *agent) enter() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return false
	}
	a.work.Add(1)
	return true
}

func (a *agent) serveHTTP(s *http.Server, l net.Listener) {
	a.work.Go(func() { _ = s.Serve(l) }) // its error is that it was closed
}

// acceptPause is the pause after Accept failed, for example because no descriptor is left.
const acceptPause = 100 * time.Millisecond

func (a *agent) pause() {
	select {
	case <-a.ctx.Done():
	case <-time.After(acceptPause):
	}
}

// accept calls handle for each connection of a listener, each in its own goroutine.
func (a *agent) accept(l net.Listener, handle func(*agentConn)) {
	in := &limitListener{l, a}
	a.work.Go(func() {
		for {
			conn, err := in.Accept()
			if a.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				if err == nil {
					_ = conn.Close()
				}
				return
			}
			if err != nil {
				a.pause()
				continue
			}
			a.work.Go(func() {
				c := conn.(*agentConn)
				defer context.AfterFunc(a.ctx, func() { _ = c.Close() })()
				handle(c)
			})
		}
	})
}
