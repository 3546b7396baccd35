package metrics

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/promptware-os/pwos/client"
)

// scrapeTime is the time limit of a scrape, the default of Prometheus.
const scrapeTime = 10 * time.Second

// Options configure a Server.
type Options struct {
	// Dial connects to the kernel. It is called again after the connection was lost.
	Dial func(ctx context.Context) (*client.Client, error)
	// Version is the version of the program that serves.
	Version string
	// Token is the bearer token of requests. If it is "", the Host of a request must be a loopback address, so that a
	// page in a browser cannot read the metrics by DNS rebinding.
	Token string
	// Trouble is called with the error when the kernel stops answering, and with nil when it answers again.
	Trouble func(error)
}

// Server serves /metrics.
type Server struct {
	opt Options

	mu      sync.Mutex // one scrape at a time
	client  *client.Client
	failing bool // the last scrape failed
}

// NewServer returns a Server. Close ends it.
func NewServer(o Options) *Server { return &Server{opt: o} }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case s.opt.Token == "" && !loopback(r.Host):
		http.Error(w, "use a loopback address in the URL", http.StatusMisdirectedRequest)
	case s.opt.Token != "" && !hasToken(r, s.opt.Token):
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "the token is missing or wrong: send Authorization: Bearer …", http.StatusUnauthorized)
	case r.URL.Path != "/metrics":
		http.Error(w, "the metrics are at /metrics", http.StatusNotFound)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "metrics are read with GET", http.StatusMethodNotAllowed)
	default:
		s.scrape(w, r)
	}
}

// loopback reports whether the Host of a request names this machine's loopback.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// hasToken compares the token of a request in constant time.
func hasToken(r *http.Request, token string) bool {
	sent, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	got, want := sha256.Sum256([]byte(sent)), sha256.Sum256([]byte(token))
	return ok && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

func (s *Server) scrape(w http.ResponseWriter, r *http.Request) {
	found := prometheus.NewRegistry()
	found.MustRegister(&collector{version: s.opt.Version, answers: s.ask(r.Context())})
	promhttp.HandlerFor(found, promhttp.HandlerOpts{}).ServeHTTP(w, r)
}

// ask queries the kernel, on the connection of the last scrape if that still works; nil: it does not answer.
func (s *Server) ask(ctx context.Context) *answers {
	ctx, cancel := context.WithTimeout(ctx, scrapeTime)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.client != nil
	a, err := s.try(ctx)
	if err != nil && kept && ctx.Err() == nil { // the kernel was restarted between two scrapes
		a, err = s.try(ctx)
	}
	if failing := err != nil; failing != s.failing {
		s.failing = failing
		s.opt.Trouble(err)
	}
	return a
}

func (s *Server) try(ctx context.Context) (a *answers, err error) {
	if s.client == nil {
		if s.client, err = s.opt.Dial(ctx); err != nil {
			return nil, err
		}
	}
	if a, err = fetch(ctx, s.client); err != nil {
		err = errors.Join(err, s.drop())
	}
	return a, err
}

// drop closes the connection.
func (s *Server) drop() error {
	if s.client == nil {
		return nil
	}
	c := s.client
	s.client = nil
	return c.Close()
}

// Close ends the connection to the kernel.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drop()
}
