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

// serveRelay serves a connection to an address that the name server has assigned to a name.
func (a *agent) serveRelay(c *agentConn) {
	to, ok := a.destination(c.LocalAddr())
	if !ok {
		_ = c.Close() // the address has no name
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
		_ = a.tunnelTo(a.by(a.ctx, c), to, func() (net.Conn, *bufio.Reader, error) { return c, r, nil }) // the journal has the error
	}
}

// destination returns the host to which a local address is assigned.
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

// relayTLS connects a TLS client to a host. It checks the ClientHello before it dials the host.
func (a *agent) relayTLS(to fetch.Endpoint, c net.Conn, r *bufio.Reader) {
	defer func() { _ = c.Close() }()
	read, why := a.hello(to, c, r)
	if why != "" {
		_ = a.refuse(a.by(a.ctx, c), to, why) // the journal has the error
		return
	}
	_ = a.tunnelTo(a.by(a.ctx, c), to, func() (net.Conn, *bufio.Reader, error) { return c, replay(read, r), nil })
}

// hello reads the ClientHello of a connection to a host. It returns the bytes that it read, and why the connection is refused, or "".
func (a *agent) hello(to fetch.Endpoint, c net.Conn, r *bufio.Reader) (read []byte, why string) {
	_ = c.SetReadDeadline(time.Now().Add(a.Limits.Hello))
	defer func() { _ = c.SetReadDeadline(time.Time{}) }()
	name, read, err := peekHello(r)
	if err != nil {
		return nil, "what it sent is no TLS"
	}
	return read, a.asks(to, name)
}

// serveWeb serves a connection to port 80 of a host as plain HTTP, or as TLS if it begins as TLS.
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

// intercepted returns the intercepted upstream with the host to, nil if there is none that this agent may use.
func (a *agent) intercepted(to fetch.Endpoint) *Upstream {
	for _, u := range a.Config.Upstreams {
		if a.taken[u.Name] != nil && u.endpoint == to.String() && a.current().admitsUpstream(u.Name) {
			return u
		}
	}
	return nil
}

// intercept serves a connection to the host of an upstream, with a certificate of the kernel's authority.
func (a *agent) intercept(u *Upstream, to fetch.Endpoint, c net.Conn, r *bufio.Reader) {
	read, why := a.hello(to, c, r)
	if why != "" {
		_ = a.refuse(a.by(a.ctx, c), to, why) // the journal has the error
		_ = c.Close()
		return
	}
	a.taken[u.Name].push(tls.Server(&begun{c, replay(read, r)}, a.Authority.config(to.Host())))
}

// maxHello is the longest ClientHello with its record headers, in bytes.
const maxHello = 32 << 10

// recordHandshake is the content type of a TLS handshake record, the first byte of a connection.
const recordHandshake = 0x16

// errNoHello is the error for bytes that are not a TLS ClientHello, or for a ClientHello that is too long.
var errNoHello = errors.New("does not begin with a TLS ClientHello")

// peekHello reads a ClientHello from r. It returns the server name in lower case, or "", and all bytes that it read,
// which the caller must send to the host.
func peekHello(r io.Reader) (name string, read []byte, err error) {
	var buf bytes.Buffer
	found := false
	stop := errors.New("seen")
	from := &oneSided{r: io.TeeReader(io.LimitReader(r, maxHello), &buf)}
	// The parser of crypto/tls also checks that there is one server name and no duplicate extension.
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

// oneSided is a connection that discards writes.
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

func (*oneSided) Write(p []byte) (int, error)      { return len(p), nil } // discards an alert
func (*oneSided) Close() error                     { return nil }
func (*oneSided) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (*oneSided) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (*oneSided) SetDeadline(time.Time) error      { return nil }
func (*oneSided) SetReadDeadline(time.Time) error  { return nil }
func (*oneSided) SetWriteDeadline(time.Time) error { return nil }
