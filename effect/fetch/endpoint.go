package fetch

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/promptware-os/pwos/schema/fault"
)

// dialTime bounds a Dial: all addresses of a name together.
const dialTime = 15 * time.Second

// Endpoint is the far end of a connection: a host and a port in the one form in which they are judged and dialled.
type Endpoint struct{ target *target }

// ParseEndpoint reads an authority as a CONNECT request has it, host:port. Where the port is missing it is port; 0 makes it
// necessary. The error is NetInvalid.
func ParseEndpoint(authority string, port uint16) (Endpoint, error) {
	host := authority
	if i := strings.LastIndexByte(authority, ':'); i > strings.LastIndexByte(authority, ']') {
		var ok bool
		if port, ok = parsePort(authority[i+1:]); !ok {
			return Endpoint{}, fault.NetInvalid.New("Invalid input: a connection must have a port from 1 to 65535")
		}
		host = authority[:i]
	}
	if port == 0 {
		return Endpoint{}, fault.NetInvalid.New("Invalid input: a connection must have a port from 1 to 65535")
	}
	name, addr, why := parseName(host)
	if why != "" {
		return Endpoint{}, fault.NetInvalid.New("Invalid input: a connection has a host that %s", why)
	}
	t := &target{name: name, addr: addr, port: port}
	scheme := "https"
	if port == 80 {
		scheme = "http"
	}
	t.url = &url.URL{Scheme: scheme, Host: t.authority(scheme)}
	return Endpoint{t}, nil
}

// Host is the name in lower case, or the address without brackets.
func (e Endpoint) Host() string { return e.target.name }

// Port is the port.
func (e Endpoint) Port() uint16 { return e.target.port }

// IsAddr reports whether the host is an address.
func (e Endpoint) IsAddr() bool { return e.target.addr.IsValid() }

// Authority is the host with its port, without the port where that is the one of the scheme.
func (e Endpoint) Authority(scheme string) string { return e.target.authority(scheme) }

// String is the host with its port.
func (e Endpoint) String() string {
	return net.JoinHostPort(e.target.name, strconv.Itoa(int(e.target.port)))
}

// Admits reports whether the pattern allows a connection to e. Without a port it stands for 80 and 443.
func (h Host) Admits(e Endpoint) bool {
	switch {
	case h.any:
	case h.port != 0 && h.port != e.target.port, h.port == 0 && e.target.port != 80 && e.target.port != 443:
		return false
	}
	return h.AdmitsName(e)
}

// AdmitsName reports whether the pattern allows the host of e on any port.
func (h Host) AdmitsName(e Endpoint) bool { return h.names(e.target) }

// Ported returns the port that the pattern names, 0 where it names none.
func (h Host) Ported() uint16 { return h.port }

// RootCAs are the authorities that servers are verified against; nil: the system's.
func (f *Fetcher) RootCAs() *x509.CertPool { return f.options.RootCAs }

// Dial resolves the host of e once, judges its addresses as for Http.Fetch, and connects to one that passes. Its error is a
// fault: HTTPAddress, NetTimeout, NetUnreachable or the cause of ctx.
func (f *Fetcher) Dial(ctx context.Context, e Endpoint) (net.Conn, error) {
	timed, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	d := &destination{target: e.target, ctx: timed, fetcher: f, gate: newGate(f.options.Allow), own: allowed(f.options.AllowHosts, e.target)}
	conn, err := d.dial(timed, "", "")
	switch {
	case err == nil:
		return conn, nil
	case ctx.Err() != nil:
		return nil, fault.Of(context.Cause(ctx))
	case timed.Err() != nil:
		return nil, fault.NetTimeout.New("%s did not accept the connection within %v: try again later", e, dialTime)
	}
	if shown, ok := errors.AsType[*fault.Fault](err); ok {
		return nil, shown
	}
	return nil, fault.NetUnreachable.New("%s %s", e, reason(err))
}
