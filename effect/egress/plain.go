package egress

import (
	"context"
	"errors"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"strings"
	"time"

	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// forward makes one exchange of plain HTTP with a host, on its own connection. It parses and rewrites the request, so that the host
// cannot parse it differently, and no second request can be smuggled in it.
func (a *agent) forward(w http.ResponseWriter, r *http.Request, to fetch.Endpoint) {
	answered, complete := false, true
	err := a.reach(r.Context(), to, func(ctx context.Context, g *guarded, server net.Conn) (*ending, error) {
		c := &counted{Conn: server, guarded: g, end: &ending{}, idle: a.Limits.Idle}
		defer context.AfterFunc(ctx, func() { _ = c.Close() })()
		answered = true
		var failed error
		complete, failed = exchange(w, within(r, ctx), c, to)
		switch cause := context.Cause(ctx); {
		case cause != nil:
			c.end.why = said(cause)
		case failed != nil:
			return nil, failed
		case complete:
			c.end.why = "the exchange was complete"
		default:
			c.end.why = "the exchange broke off"
		}
		return c.end, nil
	})
	conclude(w, err, answered, complete)
}

// conclude ends an answer. It writes err if nothing was answered, and aborts the connection if the answer is incomplete.
func conclude(w http.ResponseWriter, err error, answered, complete bool) {
	switch {
	case err != nil && !answered:
		fail(w, err)
	case !complete:
		panic(http.ErrAbortHandler) // the client must not take it for complete
	}
}

// within returns a request with another context, which keeps the value http.ServerContextKey.
func within(r *http.Request, ctx context.Context) *http.Request {
	return r.WithContext(context.WithValue(ctx, http.ServerContextKey, r.Context().Value(http.ServerContextKey)))
}

// exchange sends a request over conn, and writes the answer to w. It reports whether the answer is complete, and the error if there
// was no valid answer.
func exchange(w http.ResponseWriter, r *http.Request, conn net.Conn, to fetch.Endpoint) (complete bool, failed error) {
	dialled := false
	transport := &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			if dialled {
				return nil, net.ErrClosed // a retry would need a second connection, which is not journaled
			}
			dialled = true
			return conn, nil
		},
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10,
	}
	defer transport.CloseIdleConnections()
	complete = pass(w, r, &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = "http", to.String(), to.Authority("http")
			p.Out.URL.RawQuery = p.In.URL.RawQuery
			onlyWebsocket(p.Out)
			maps.DeleteFunc(p.Out.Header, func(name string, _ []string) bool { // such as X-Original-Host
				return schema.OverridesRequest(name) && strings.Contains(schema.HeaderKey(name), "host")
			})
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			failed = fault.HTTPUpstream.New("%s sent an invalid HTTP answer: try again later", to)
			fail(w, failed)
		},
	})
	return complete, failed
}

// pass runs a proxy for one request, and reports whether the answer is complete. The proxy panics if it is not.
func pass(w http.ResponseWriter, r *http.Request, proxy http.Handler) (complete bool) {
	defer func() {
		if p := recover(); p != nil {
			if p != http.ErrAbortHandler {
				panic(p)
			}
			complete = false
		}
	}()
	proxy.ServeHTTP(w, r)
	return true
}

// onlyWebsocket removes every protocol upgrade except to WebSocket, because requests in another protocol could not be
// checked.
func onlyWebsocket(r *http.Request) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		r.Header.Del("Upgrade")
		r.Header.Del("Connection")
	}
	r.Header.Del("Http2-Settings")
}

// counted is a connection to a host that counts its bytes. Reads and writes fail when the grant no longer allows the host.
type counted struct {
	net.Conn
	*guarded
	end  *ending
	idle time.Duration
	last timestamp
}

func (c *counted) Read(p []byte) (int, error) {
	for {
		_ = c.Conn.SetReadDeadline(time.Now().Add(c.idle))
		n, err := c.Conn.Read(p)
		if n > 0 {
			if !c.check() {
				return 0, errRevoked
			}
			c.last.touch()
			c.end.received.Add(int64(n))
		}
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && c.last.within(c.idle) {
			continue // the request is still being sent
		}
		return n, err
	}
}

func (c *counted) Write(p []byte) (int, error) {
	if !c.check() {
		return 0, errRevoked
	}
	_ = c.Conn.SetWriteDeadline(time.Now().Add(c.idle))
	c.end.sent.Add(int64(len(p))) // before Write, because the host may answer before it returns
	n, err := c.Conn.Write(p)
	c.last.touch()
	c.end.sent.Add(int64(n - len(p)))
	return n, err
}
