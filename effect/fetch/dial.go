package fetch

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/promptware-os/pwos/schema/fault"
)

const (
	maxAddresses = 8               // of a name that are tried
	attemptTime  = 3 * time.Second // for one address where more are left
)

// destination dials the host of one target, and owns the connections.
type destination struct {
	*target
	ctx     context.Context // the call's: dialling ends with it, whatever the transport thinks
	fetcher *Fetcher
	gate    gate
	own     bool // the network of one's own is open to this host

	mu     sync.Mutex
	conns  []net.Conn
	closed bool
	dials  sync.WaitGroup
}

// dial resolves the target's name, judges each address and connects to one that passes. The transport's idea of where to
// connect is not asked.
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

// addresses returns those addresses of the target that may be dialled.
func (d *destination) addresses() ([]netip.Addr, error) {
	found := []netip.Addr{d.addr}
	if !d.addr.IsValid() {
		var err error
		if found, err = d.fetcher.options.Resolver.LookupNetIP(d.ctx, "ip", d.name); err != nil {
			return nil, err
		}
	}
	var open []netip.Addr
	var why kind
	for _, a := range found {
		if !d.addr.IsValid() {
			a = a.Unmap() // a resolver may write IPv4 as it likes; who writes a URL has no need to
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

// refuse says that an address is closed. It does not say which one: what a name stands for inside is nobody's business.
func (t *target) refuse(why kind) *fault.Fault {
	return fault.HTTPAddress.New("%s is %s, which is closed to agents: have it opened in the kernel's configuration", t.url.Host, why).With("host", t.url.Host)
}

func (d *destination) connect(to netip.AddrPort, more bool) (net.Conn, error) {
	ctx := d.ctx
	if more {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, attemptTime)
		defer cancel()
	}
	if d.fetcher.options.dial != nil {
		return d.fetcher.options.dial(ctx, "tcp", to.String())
	}
	dialer := net.Dialer{ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		return d.recheck(address)
	}}
	return dialer.DialContext(ctx, "tcp", to.String())
}

// recheck judges the address that the socket is about to connect to: the last word, whatever came before.
func (d *destination) recheck(address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return d.refuse("at no address")
	}
	if why := d.gate.judge(to.Addr(), d.own); why != "" {
		return d.refuse(why)
	}
	return nil
}

// keep makes a connection the destination's own, which close closes.
func (d *destination) keep(conn net.Conn) (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errors.Join(net.ErrClosed, conn.Close())
	}
	d.conns = append(d.conns, conn)
	return conn, nil
}

// close closes all connections and waits for what is being dialled, whose context must have ended or is about to.
func (d *destination) close() {
	d.mu.Lock()
	d.closed = true
	conns := d.conns
	d.mu.Unlock()
	for _, c := range conns {
		_ = c.Close() // the answer was read, or is not wanted
	}
	d.dials.Wait()
}
