package fetch

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/promptware-os/pwos/schema/fault"
)

const (
	maxAddresses = 8               // addresses of a name that are tried
	attemptTime  = 3 * time.Second // for one address, if there are more
)

// destination dials the host of a target, and closes the connections.
type destination struct {
	*target
	*Fetcher
	ctx context.Context // of the call: the transport may dial with a longer context
	own bool            // Options.AllowHosts has this host

	mu     sync.Mutex
	conns  []net.Conn
	closed bool
	dials  sync.WaitGroup
}

func (f *Fetcher) destination(ctx context.Context, t *target) *destination {
	return &destination{target: t, Fetcher: f, ctx: ctx, own: allowed(f.options.AllowHosts, t)}
}

// dial resolves the name of the target, checks each address, and connects to one that may be dialled. It ignores the address that the
// transport passes.
func (d *destination) dial(context.Context, string, string) (net.Conn, error) {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil, net.ErrClosed
	}
	d.dials.Add(1)
	d.mu.Unlock()
	defer d.dials.Done()

	addrs, err := d.addresses()
	if err != nil {
		return nil, err
	}
	var conn net.Conn
	for i, a := range addrs {
		if conn, err = d.connect(netip.AddrPortFrom(a, d.port), i+1 < len(addrs)); err == nil {
			return d.keep(conn)
		}
		if _, shown := errors.AsType[*fault.Fault](err); shown || d.ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

// addresses returns the addresses of the target that may be dialled.
func (d *destination) addresses() ([]netip.Addr, error) {
	found := []netip.Addr{d.addr}
	if !d.addr.IsValid() {
		var err error
		if found, err = d.options.Resolver.LookupNetIP(d.ctx, "ip", d.name); err != nil {
			return nil, err
		}
	}
	var open []netip.Addr
	var why kind
	for _, a := range found {
		if !d.addr.IsValid() {
			a = a.Unmap() // a resolver may return IPv4 as IPv6; in a URL it is refused
		}
		if k := d.gate.judge(a, d.own); k != "" {
			why = k
		} else if len(open) < maxAddresses {
			open = append(open, a)
		}
	}
	switch {
	case len(open) > 0:
		return open, nil
	case why != "":
		return nil, d.refuse(why)
	}
	return nil, &net.DNSError{Err: "no address", Name: d.name, IsNotFound: true}
}

// refuse returns the fault for an address that must not be dialled. It does not have the address, because an agent must not learn the
// addresses of a private network.
func (t *target) refuse(why kind) *fault.Fault {
	if why.own() {
		return fault.HTTPAddress.New("%s is %s, which is closed to agents: the operator opens it with allow_hosts = [%q] below [http] in the kernel's configuration", t.url.Host, why, t.url.Host).With("host", t.url.Host)
	}
	return fault.HTTPAddress.New("%s is %s, which is closed to agents: have it opened in the kernel's configuration", t.url.Host, why).With("host", t.url.Host)
}

func (d *destination) connect(to netip.AddrPort, more bool) (net.Conn, error) {
	ctx := d.ctx
	if more {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, attemptTime)
		defer cancel()
	}
	if d.options.dial != nil {
		return d.options.dial(ctx, "tcp", to.String())
	}
	dialer := net.Dialer{ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		return d.recheck(address)
	}}
	return dialer.DialContext(ctx, "tcp", to.String())
}

// recheck checks the address again right before the socket connects to it.
func (d *destination) recheck(address string) error {
	to, err := netip.ParseAddrPort(address)
	why := d.gate.judge(to.Addr(), d.own)
	if err != nil {
		why = "at no address"
	}
	if why != "" {
		return d.refuse(why)
	}
	return nil
}

// keep adds a connection to those that close closes.
func (d *destination) keep(conn net.Conn) (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errors.Join(net.ErrClosed, conn.Close())
	}
	d.conns = append(d.conns, conn)
	return conn, nil
}

// close closes all connections, and waits for dials in flight. The caller must have canceled their context.
func (d *destination) close() {
	d.mu.Lock()
	d.closed = true
	conns := d.conns
	d.mu.Unlock()
	for _, c := range conns {
		_ = c.Close() // the exchange is over
	}
	d.dials.Wait()
}

// dialTime is the time limit of a Dial, for all addresses of a name together.
const dialTime = 15 * time.Second

// Endpoint is the destination of a connection: a host and port in canonical form.
type Endpoint struct{ target *target }

// ParseEndpoint parses a host and an optional port, host:port. port is the default; if it is 0, the port is required.
// The error is NetInvalid.
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

// Host returns the name in lower case, or the address without brackets.
func (e Endpoint) Host() string { return e.target.name }

// Port returns the port.
func (e Endpoint) Port() uint16 { return e.target.port }

// IsAddr reports whether the host is an address.
func (e Endpoint) IsAddr() bool { return e.target.addr.IsValid() }

// Authority returns the host with its port, which it omits if it is the default port of the scheme.
func (e Endpoint) Authority(scheme string) string { return e.target.authority(scheme) }

// String returns the host with its port.
func (e Endpoint) String() string {
	return net.JoinHostPort(e.target.name, strconv.Itoa(int(e.target.port)))
}

// Admits reports whether the pattern allows a connection to e. A pattern without a port allows the ports 80 and 443.
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

// Ported returns the port that the pattern names, 0 if it names none.
func (h Host) Ported() uint16 { return h.port }

// RootCAs returns the authorities that servers are verified against; nil: the system's.
func (f *Fetcher) RootCAs() *x509.CertPool { return f.options.RootCAs }

// Dial resolves the host of e once, checks its addresses as for Http.Fetch, and connects to one that may be dialled. Its error is a
// fault: HTTPAddress, NetTimeout, NetUnreachable or the cause of ctx.
func (f *Fetcher) Dial(ctx context.Context, e Endpoint) (net.Conn, error) {
	timed, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	conn, err := f.destination(timed, e.target).dial(timed, "", "")
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
