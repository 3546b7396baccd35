package fetch

import (
	"cmp"
	"context"
	"crypto/x509"
	"net"
	"net/netip"
	"slices"
	"time"
)

// Options has the settings of a Fetcher. The zero value allows only public addresses.
type Options struct {
	// Allow has networks that are allowed although they are not public, such as 10.1.0.0/16.
	Allow []netip.Prefix
	// AllowHosts has hosts whose addresses may be loopback, private or shared addresses. It does not allow link-local
	// addresses, where clouds serve credentials; Allow can.
	AllowHosts []Host
	// Resolver resolves names; nil: the system's.
	Resolver Resolver
	// RootCAs has the authorities that servers are verified against; nil: the system's.
	RootCAs *x509.CertPool
	// UserAgent is sent if the request has no User-Agent; empty: pwos.
	UserAgent string
	Limits    Limits

	// dial connects to a checked address; nil: a net.Dialer does.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Resolver looks up the addresses of a name; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Limits bounds one call; 0 means the default.
type Limits struct {
	Timeout    time.Duration // in total, if the request sets none: 5 s (MESSAGE appendix D)
	MaxTimeout time.Duration // in total, the most that a request may set: 30 s (MESSAGE appendix D)
	Header     time.Duration // from the start of a request to the end of the answer's header, again for each redirect: 10 s
	Idle       time.Duration // between two pieces of the body: 10 s

	RequestBytes int64 // of a request's body: 16 MiB
	WireBytes    int64 // of an answer's body as sent: 32 MiB
	BodyBytes    int64 // of an answer's body unpacked: 32 MiB
	HeaderBytes  int64 // of a header, each way: 32 KiB
	InlineBytes  int   // of a body that Response.Body holds, as a JSON string: 8 KiB

	Redirects int // followed: 5
	// Concurrent is how many calls are in flight; further calls wait, within their time limit: 96, more than the effects of agents and
	// of the operator that run at a time, so that the operator waits for no agent here either.
	Concurrent int
}

func (l Limits) orDefault() Limits {
	l.Timeout = cmp.Or(l.Timeout, 5*time.Second)
	l.MaxTimeout = cmp.Or(l.MaxTimeout, 30*time.Second)
	l.Header = cmp.Or(l.Header, 10*time.Second)
	l.Idle = cmp.Or(l.Idle, 10*time.Second)
	l.RequestBytes = cmp.Or(l.RequestBytes, 16<<20)
	l.WireBytes = cmp.Or(l.WireBytes, 32<<20)
	l.BodyBytes = cmp.Or(l.BodyBytes, 32<<20)
	l.HeaderBytes = cmp.Or(l.HeaderBytes, 32<<10)
	l.InlineBytes = cmp.Or(l.InlineBytes, 8<<10)
	l.Redirects = cmp.Or(l.Redirects, 5)
	l.Concurrent = cmp.Or(l.Concurrent, 96)
	return l
}

// Fetcher sends requests. It may be used concurrently.
type Fetcher struct {
	options Options
	limits  Limits
	gate    gate
	slots   chan struct{} // has a value for each call in flight
}

// New returns a Fetcher with the given settings.
func New(o Options) *Fetcher {
	o.Allow, o.AllowHosts = slices.Clone(o.Allow), slices.Clone(o.AllowHosts)
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	o.UserAgent = cmp.Or(o.UserAgent, "pwos")
	limits := o.Limits.orDefault()
	return &Fetcher{options: o, limits: limits, gate: gate{specials(), o.Allow}, slots: make(chan struct{}, limits.Concurrent)}
}
