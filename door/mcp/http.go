package mcp

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// HTTP configures access over streamable HTTP.
type HTTP struct {
	Listener    net.Listener
	Certificate *tls.Certificate       // nil: no TLS
	Token       func() (string, error) // returns the bearer token of requests; called after the connection to the kernel
	Hosts       []string               // allowed names in the Host header, besides the listening address and loopback
	Origins     []string               // allowed origins of pages, such as https://app.example, besides this server's own
}

// Bounds of an HTTP server.
const (
	headerTime  = 10 * time.Second
	sessionIdle = time.Hour
)

// ServeHTTP serves hosts at /mcp until ctx ends.
func (b *Bridge) ServeHTTP(ctx context.Context, o *HTTP) error {
	return b.Serve(ctx, func(ctx context.Context, server *sdk.Server) error {
		guard, err := o.guard()
		if err != nil {
			return err
		}
		mux := http.NewServeMux()
		mux.Handle("/mcp", guard(sdk.NewStreamableHTTPHandler(
			func(*http.Request) *sdk.Server { return server },
			// The guard checks the host names of requests.
			&sdk.StreamableHTTPOptions{SessionTimeout: sessionIdle, DisableLocalhostProtection: true},
		)))
		web := &http.Server{Handler: mux, ReadHeaderTimeout: headerTime, BaseContext: func(net.Listener) context.Context { return ctx }}
		stop := context.AfterFunc(ctx, func() { _ = web.Close() })
		defer stop()
		if o.Certificate != nil {
			web.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*o.Certificate}}
			err = web.ServeTLS(o.Listener, "", "")
		} else {
			err = web.Serve(o.Listener)
		}
		for session := range server.Sessions() { // sessions that no host has ended
			_ = session.Close() // errors have no receiver
		}
		if errors.Is(err, http.ErrServerClosed) {
			return context.Cause(ctx)
		}
		return fmt.Errorf("serve MCP on %s: %w", o.Listener.Addr(), err)
	})
}

// CheckOrigin returns an error if origin is not valid in HTTP.Origins.
func CheckOrigin(origin string) error {
	return http.NewCrossOriginProtection().AddTrustedOrigin(origin)
}

// guard returns a function that wraps a handler: a request must have the token, name this server in its Host header, and not come
// from a foreign page.
func (o *HTTP) guard() (func(http.Handler) http.Handler, error) {
	foreign := http.NewCrossOriginProtection()
	for _, origin := range o.Origins {
		if err := foreign.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("trust origin %q: %w", origin, err)
		}
	}
	token, err := o.Token()
	if err != nil {
		return nil, err
	}
	want := sha256.Sum256([]byte("Bearer " + token))
	return func(next http.Handler) http.Handler {
		next = foreign.Handler(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
			switch {
			case !o.named(r.Host):
				http.Error(w, fmt.Sprintf("this server is not %q: allow the name with --allow-host", r.Host), http.StatusForbidden)
			case !o.fromHere(r):
				http.Error(w, "a page of another origin may not call: allow it with --allow-origin", http.StatusForbidden)
			case subtle.ConstantTimeCompare(got[:], want[:]) != 1:
				w.Header().Set("WWW-Authenticate", "Bearer")
				http.Error(w, "the bearer token is missing or wrong", http.StatusUnauthorized)
			default:
				next.ServeHTTP(w, r)
			}
		})
	}, nil
}

// named reports whether a Host header names this server.
func (o *HTTP) named(host string) bool {
	name := hostname(host)
	if ip := net.ParseIP(name); ip != nil && ip.IsLoopback() || name == "localhost" {
		return o.loopback()
	}
	return name == hostname(o.Listener.Addr().String()) || slices.ContainsFunc(o.Hosts, func(allowed string) bool {
		return strings.EqualFold(allowed, host) || strings.EqualFold(allowed, name)
	})
}

// loopback reports whether the server can be reached over loopback.
func (o *HTTP) loopback() bool {
	addr, ok := o.Listener.Addr().(*net.TCPAddr)
	return ok && (addr.IP.IsLoopback() || addr.IP.IsUnspecified())
}

// hostname returns the host of a host and port, in lower case.
func hostname(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		hostport = host
	}
	return strings.ToLower(strings.Trim(hostport, "[]"))
}

// fromHere reports whether a request has no Origin header, the origin of this server, or an allowed one. It is needed because
// http.CrossOriginProtection allows every GET, and a GET opens a stream here.
func (o *HTTP) fromHere(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return true
	}
	scheme := "http://"
	if o.Certificate != nil {
		scheme = "https://"
	}
	return len(origins) == 1 && (origins[0] == scheme+r.Host || slices.Contains(o.Origins, origins[0]))
}
