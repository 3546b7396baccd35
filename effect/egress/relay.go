package egress

import (
	"bufio"
	"crypto/tls"
	"net"
	"net/netip"
	"time"

	"github.com/promptware-os/pwos/effect/fetch"
)

// serveRelay serves a connection to an address that stands for a name.
func (a *agent) serveRelay(c *held) {
	to, ok := a.destination(c.LocalAddr())
	if !ok {
		_ = c.Close() // an address that no name was answered with
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

// destination is the host that a local address stands for.
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

// relayTLS connects a client of TLS. What it asks for is looked at before the host is dialled.
func (a *agent) relayTLS(to fetch.Endpoint, c net.Conn, r *bufio.Reader) {
	defer func() { _ = c.Close() }()
	read, why := a.hello(to, c, r)
	if why != "" {
		_ = a.refuse(to, why) // it is journaled
		return
	}
	_ = a.tunnelTo(to, func() (net.Conn, *bufio.Reader, error) { return c, replay(read, r), nil })
}

// hello reads the ClientHello of a connection to to, and says why it is refused.
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
	a.plainIn.hand(&bound{Conn: &begun{c, r}, to: to})
}

// intercepted returns the upstream whose host to is, where that is to be answered here for this agent.
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
	a.taken[u.Name].hand(tls.Server(&begun{c, replay(read, r)}, a.Authority.config(to.Host())))
}
