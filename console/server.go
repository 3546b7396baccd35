package console

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/promptware-os/pwos/client"
)

// Options configure a Server.
type Options struct {
	Listener net.Listener                                  // on a loopback address; Serve closes it
	Dial     func(context.Context) (*client.Client, error) // connects to the kernel with the authority of the page
	LoggedIn func()                                        // called after each login; may be nil
	Now      func() time.Time                              // nil: time.Now
}

// Server serves the page. New makes one.
type Server struct {
	listener net.Listener
	port     string
	hosts    []string
	page     *page
	sessions *sessions
	kernels  *kernels
	loggedIn func()
}

// Bounds of the server.
const (
	headerTime  = 10 * time.Second
	idleTime    = time.Minute      // a connection without a request
	writeTime   = 30 * time.Second // a peer that does not read
	headerBytes = 16 << 10
	bodyBytes   = 64 << 10
	connections = 128 // with a session, and as many without
)

// New returns the server for a listener. It returns an error if the listener is not on a loopback address.
func New(o Options) (*Server, error) {
	address, ok := o.Listener.Addr().(*net.TCPAddr)
	if !ok || !address.IP.IsLoopback() {
		return nil, fmt.Errorf("serve console: %s is open to other machines: name a loopback address such as 127.0.0.1:0", o.Listener.Addr())
	}
	page, err := readPage()
	if err != nil {
		return nil, err
	}
	now := o.Now
	if now == nil {
		now = time.Now
	}
	port := fmt.Sprint(address.Port)
	s := &Server{
		listener: o.Listener, port: port, page: page, sessions: newSessions(now), kernels: newKernels(o.Dial), loggedIn: o.LoggedIn,
		hosts: []string{net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("::1", port), net.JoinHostPort("localhost", port)},
	}
	if ip := address.IP.String(); ip != "127.0.0.1" && ip != "::1" {
		s.hosts = append(s.hosts, net.JoinHostPort(ip, port))
	}
	return s, nil
}

// URL returns the address of the page, without a secret.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + "/" }

// NewLink returns a new link, with which one page can log in. It replaces the previous link.
func (s *Server) NewLink() string { return s.URL() + "#" + s.sessions.newSecret() }

// Serve serves until ctx ends, and returns the cause of ctx.
func (s *Server) Serve(ctx context.Context) error {
	defer s.kernels.close()
	defer s.sessions.close()
	web := &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: headerBytes,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connection{}, conn)
		},
	}
	stop := context.AfterFunc(ctx, func() { _ = web.Close() }) // Serve returns the error
	defer stop()
	err := web.Serve(newBounded(s.listener, connections))
	if errors.Is(err, http.ErrServerClosed) {
		return context.Cause(ctx)
	}
	return fmt.Errorf("serve console on %s: %w", s.listener.Addr(), err)
}

// handler returns the handler of all routes, wrapped by guard.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page.index)
	mux.HandleFunc("GET /page/{file...}", s.page.file)
	mux.HandleFunc("POST /api/login", s.login)
	for route, handle := range map[string]http.HandlerFunc{
		"POST /api/logout":      s.logout,
		"POST /api/call/{type}": s.call,
		"GET /api/kernels":      s.kernels.list,
		"GET /api/events":       s.events,
		"GET /api/processes":    s.processes,
		"GET /api/log":          s.log,
		"GET /api/entry/{seq}":  s.entry,
		"GET /api/approvals":    s.approvals,
		"GET /api/graph":        s.graph,
		"GET /api/past":         s.past,
		"GET /api/search":       s.search,
	} {
		mux.Handle(route, s.sessions.only(handle))
	}
	mux.HandleFunc("/", notFound)
	return s.guard(mux)
}
