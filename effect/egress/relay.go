package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/promptware-os/pwos/effect/fetch"
)

// serveRelay serves a connection to an address that represents a name.
func (a *agent) serveRelay(c *agentConn) {
	to, ok := a.destination(c.LocalAddr())
	if !ok {
		_ = c.Close() // an address that represents no name
		return
	}
	r := bufio.NewReaderSize(c, 4<<10)
	if u := a.intercepted(to); u != nil {
		a.intercept(u, to, c, r)
		return
	}
	switch {
	case to.Port() == 80:
		a.serveWeb(to, c, r)
	case to.Port() == 443:
		a.relayTLS(to, c, r)
	default:
		defer func() { _ = c.Close() }()
		_ = a.tunnelTo(to, func() (net.Conn, *bufio.Reader, error) { return c, r, nil }) // it is journaled
	}
}

// destination is the host that a local address represents.
func (a *agent) destination(local net.Addr) (fetch.Endpoint, bool) {
	at, err := netip.ParseAddrPort(local.String())
	if err != nil {
		return fetch.Endpoint{}, false
	}
	name := a.names.name(at.Addr())
	if name == "" {
		return fetch.Endpoint{}, false
	}
	to, err := fetch.ParseEndpoint(name, at.Port())
	return to, err == nil
}

// relayTLS connects a TLS client. It checks the ClientHello before the host is dialled.
func (a *agent) relayTLS(to fetch.Endpoint, c net.Conn, r *bufio.Reader) {
	defer func() { _ = c.Close() }()
	read, why := a.hello(to, c, r)
	if why != "" {
		_ = a.refuse(to, why) // it is journaled
		return
	}
	_ = a.tunnelTo(to, func() (net.Conn, *bufio.Reader, error) { return c, replay(read, r), nil })
}

// hello reads the ClientHello of a connection to to, and returns why it is refused.
func (a *agent) hello(to fetch.Endpoint, c net.Conn, r *bufio.Reader) (read []byte, why string) {
	_ = c.SetReadDeadline(time.Now().Add(a.Limits.Hello))
	defer func() { _ = c.SetReadDeadline(time.Time{}) }()
	name, read, err := peekHello(r)
	if err != nil {
		return nil, "what it sent is no TLS"
	}
	return read, a.asks(to, name)
}

// serveWeb serves plain HTTP on a connection to to, unless it turns out to be TLS.
func (a *agent) serveWeb(to fetch.Endpoint, c net.Conn, r *bufio.Reader) {
	_ = c.SetReadDeadline(time.Now().Add(a.Limits.Hello))
	start, err := r.Peek(1)
	if err != nil {
		_ = c.Close()
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	if start[0] == recordHandshake {
		a.relayTLS(to, c, r)
		return
	}
	a.plainIn.push(&bound{Conn: &begun{c, r}, to: to})
}

// intercepted returns the upstream whose host to is, if the kernel answers for it for this agent.
func (a *agent) intercepted(to fetch.Endpoint) *Upstream {
	for _, u := range a.Config.Upstreams {
		if a.taken[u.Name] != nil && u.endpoint == to.String() && a.current().admitsUpstream(u.Name) {
			return u
		}
	}
	return nil
}

// intercept answers for the host of an upstream, with a certificate of the kernel's own.
func (a *agent) intercept(u *Upstream, to fetch.Endpoint, c net.Conn, r *bufio.Reader) {
	read, why := a.hello(to, c, r)
	if why != "" {
		_ = a.refuse(to, why) // it is journaled
		_ = c.Close()
		return
	}
	a.taken[u.Name].push(tls.Server(&begun{c, replay(read, r)}, a.Authority.config(to.Host())))
}

// maxHello bounds a ClientHello with the records around it.
const maxHello = 32 << 10

// recordHandshake is the first byte of TLS.
const recordHandshake = 0x16

// errNoHello is the error for bytes that are no TLS ClientHello, or for one that is too long.
var errNoHello = errors.New("does not begin with a TLS ClientHello")

// peekHello reads a ClientHello from r. It returns the server name in lower case, or "", and all bytes that were read,
// which must be sent to the host.
func peekHello(r io.Reader) (name string, read []byte, err error) {
	var buf bytes.Buffer
	found := false
	stop := errors.New("seen")
	from := &oneSided{r: io.TeeReader(io.LimitReader(r, maxHello), &buf)}
	// The parser of crypto/tls decides, with its checks: one name, no extension twice.
	failed := tls.Server(from, &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		name, found = strings.ToLower(hello.ServerName), true
		return nil, stop
	}}).HandshakeContext(context.Background())
	switch {
	case found:
		return name, buf.Bytes(), nil
	case from.err != nil && !errors.Is(from.err, io.EOF):
		return "", buf.Bytes(), from.err
	case errors.Is(failed, stop):
		return "", buf.Bytes(), nil
	}
	return "", buf.Bytes(), errNoHello
}

// oneSided is a connection that is only read.
type oneSided struct {
	r   io.Reader
	err error
}

func (c *oneSided) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if err != nil {
		c.err = err
	}
	return n, err
}

func (*oneSided) Write(p []byte) (int, error)      { return len(p), nil } // an alert, which must not be sent
func (*oneSided) Close() error                     { return nil }
func (*oneSided) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (*oneSided) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (*oneSided) SetDeadline(time.Time) error      { return nil }
func (*oneSided) SetReadDeadline(time.Time) error  { return nil }
func (*oneSided) SetWriteDeadline(time.Time) error { return nil }
