package egress

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/schema/fault"
)

// serveProxy answers a request to the proxy: CONNECT, or a request for an http: URL.
func (a *agent) serveProxy(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect {
		a.serveConnect(w, r)
		return
	}
	switch {
	case !r.URL.IsAbs():
		say(w, http.StatusBadRequest, "this is a proxy: send it CONNECT, or a request for a whole http: address")
	case r.URL.Scheme != "http":
		say(w, http.StatusBadRequest, "the proxy takes http: addresses; for others send it CONNECT")
	case r.URL.User != nil:
		say(w, http.StatusBadRequest, "the address must not hold a user or a password: send them in the header Authorization")
	default:
		to, err := fetch.ParseEndpoint(r.URL.Host, 80)
		if err != nil {
			fail(w, err)
			return
		}
		a.forward(w, r, to)
	}
}

// serveConnect answers CONNECT: it connects the client to a host. On port 80 it serves the connection as plain HTTP, and for the host
// of an intercepted upstream it serves the upstream.
func (a *agent) serveConnect(w http.ResponseWriter, r *http.Request) {
	to, err := fetch.ParseEndpoint(r.RequestURI, 0)
	if err != nil {
		fail(w, err)
		return
	}
	var client net.Conn
	accept := func() (net.Conn, *bufio.Reader, error) {
		conn, both, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return nil, nil, err
		}
		client = conn
		_ = conn.SetDeadline(time.Now().Add(a.Limits.Hello))
		_, err = io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
		_ = conn.SetDeadline(time.Time{})
		return conn, both.Reader, err
	}
	u := a.intercepted(to)
	if u == nil && to.Port() != 80 {
		err = a.tunnelTo(a.request(r.Context()), to, accept)
		if client == nil {
			fail(w, err)
			return
		}
		_ = client.Close()
		return
	}
	if u == nil && !a.current().admits(to) {
		fail(w, a.refuse(a.request(r.Context()), to, ""))
		return
	}
	conn, from, err := accept()
	switch {
	case err != nil && client != nil:
		_ = client.Close()
	case err != nil:
		say(w, http.StatusInternalServerError, "the connection cannot be taken over")
	case u != nil:
		defer context.AfterFunc(a.ctx, func() { _ = conn.Close() })()
		a.intercept(u, to, conn, from)
	default:
		defer context.AfterFunc(a.ctx, func() { _ = conn.Close() })()
		a.serveWeb(to, conn, from)
	}
}

// servePlain answers a request on a connection to port 80 of a host.
func (a *agent) servePlain(w http.ResponseWriter, r *http.Request) {
	to := r.Context().Value(destinationKey{}).(fetch.Endpoint) // set when the connection was queued
	asked, err := fetch.ParseEndpoint(r.Host, 80)
	switch {
	case r.Method == http.MethodConnect || r.URL.IsAbs() && r.URL.Scheme != "http" || r.URL.User != nil:
		say(w, http.StatusBadRequest, "only requests for a path of this host are passed on")
	case err != nil:
		fail(w, err)
	case asked.String() != to.String():
		fail(w, a.refuse(a.request(r.Context()), to, "the request asked for another host, "+asked.Host()))
	default:
		a.forward(w, r, to)
	}
}

// fail answers with an error of the kernel.
func fail(w http.ResponseWriter, err error) {
	if err == nil {
		return
	}
	shown := fault.Of(err)
	code := shown.Code()
	if code == http.StatusUnprocessableEntity {
		code = http.StatusBadRequest
	}
	failAs(w, code, shown)
}

// failAs answers with an error of the kernel, and a status.
func failAs(w http.ResponseWriter, code int, shown *fault.Fault) {
	w.Header().Set(ErrorHeader, string(shown.ID))
	say(w, code, shown.Text())
}

// ErrorHeader is the header with the error id in an answer of the kernel's own. It is removed
// from answers of upstreams.
const ErrorHeader = "Pwos-Error"

// say answers with a status and a text, and closes the connection.
func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Connection", "close")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, strings.TrimSpace(text)+"\n") // the client may have disconnected
}
