package egress

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// grant is what a token says of the network at a tick, read once.
type grant struct {
	token *kernel.Token
	tick  int64
	hosts []fetch.Host
}

// current is what the agent may reach now; it never waits.
func (a *agent) current() *grant {
	token, tick := a.Tokens.Token(a.pid), a.Tick()
	g := a.grant.Load()
	if g == nil || g.token != token || g.tick != tick {
		g = &grant{token, tick, Hosts(token.Hosts(tick))}
		a.grant.Store(g)
	}
	return g
}

// Hosts reads the patterns of a capability. One that cannot be read allows no host.
func Hosts(patterns []string) []fetch.Host {
	var hosts []fetch.Host
	for _, text := range patterns {
		if h, err := fetch.ParseHost(text); err == nil {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// Admits reports whether hosts of a capability allow a connection to a host and port; with port 0, whether they allow the
// host on any port.
func Admits(patterns []string, host string, port int64) bool {
	if port < 0 || port > 65535 {
		return false
	}
	any := port == 0
	if any {
		port = 443
	}
	e, err := fetch.ParseEndpoint(bracketed(host), uint16(port))
	if err != nil {
		return false
	}
	g := grant{hosts: Hosts(patterns)}
	return any && g.admitsName(e) || !any && g.admits(e)
}

// bracketed is a host in the form that may precede a port.
func bracketed(host string) string {
	for _, c := range host {
		if c == ':' {
			return "[" + host + "]"
		}
	}
	return host
}

func (g *grant) admits(e fetch.Endpoint) bool {
	return slices.ContainsFunc(g.hosts, func(h fetch.Host) bool { return h.Admits(e) })
}

func (g *grant) admitsName(e fetch.Endpoint) bool {
	return slices.ContainsFunc(g.hosts, func(h fetch.Host) bool { return h.AdmitsName(e) })
}

func (g *grant) admitsUpstream(name string) bool { return g.token.AllowsUpstream(name, g.tick) }

// errRevoked is why a connection ends whose host is no longer allowed.
var errRevoked = errors.New("no longer allowed")

// guarded is work that ends when the grant behind it does.
type guarded struct {
	allowed func() bool
	cancel  context.CancelCauseFunc
}

// guard returns a context that ends when the agent does, or soon after allowed no longer holds. The function that it returns
// must be called at the end.
func (a *agent) guard(ctx context.Context, allowed func() bool) (*guarded, context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(a.ctx, func() { cancel(context.Cause(a.ctx)) })
	g := &guarded{allowed: allowed, cancel: cancel}
	a.mu.Lock()
	a.open[g] = struct{}{}
	a.mu.Unlock()
	return g, ctx, func() {
		stop()
		cancel(nil)
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.open, g)
	}
}

// check ends the work where the grant no longer allows it.
func (g *guarded) check() bool {
	if g.allowed() {
		return true
	}
	g.cancel(errRevoked)
	return false
}

// sweepEvery is how often open connections are compared with the grant. Tokens change by grants, by
// the grants of their granters, by time, and with the end of processes: polling is simpler than
// notification. Data that is transferred in between is checked on its own.
const sweepEvery = 200 * time.Millisecond

func (s *Server) sweep() {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-s.over:
			return
		case <-ticker.C:
		}
		for _, a := range s.all() {
			a.mu.Lock()
			for g := range a.open {
				g.check()
			}
			a.mu.Unlock()
		}
	}
}

// connect has a connection to e journaled and run once that is on disk. refused says why it is refused whatever is granted.
func (a *agent) connect(ctx context.Context, e fetch.Endpoint, refused string, run func(context.Context) (*ending, error)) error {
	_, err := a.Journal(ctx, a.pid, schema.NetConnect.With(&schema.NetConnectInput{Host: e.Host(), Port: int64(e.Port()), Refused: refused}),
		func(ctx context.Context) ([]byte, error) {
			end, err := run(ctx)
			if err != nil {
				return nil, err
			}
			return schema.Marshal(&schema.NetConnectOutput{
				Host: e.Host(), Port: int64(e.Port()), Sent: end.sent.Load(), Received: end.received.Load(), Ended: end.why,
			})
		})
	return err
}

// reach has a connection to a host journaled, dialled, and used by run as long as the grant allows it.
func (a *agent) reach(ctx context.Context, to fetch.Endpoint, run func(context.Context, *guarded, net.Conn) (*ending, error)) error {
	return a.connect(ctx, to, "", func(ctx context.Context) (*ending, error) {
		g, ctx, done := a.guard(ctx, func() bool { return a.current().admits(to) })
		defer done()
		server, err := a.Dial(ctx, to)
		if err != nil {
			return nil, a.why(ctx, err)
		}
		defer func() { _ = server.Close() }()
		return run(ctx, g, server)
	})
}

// why explains a failure by what ended the context, where that is why.
func (a *agent) why(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(cause, errRevoked) {
			return fault.NetForbidden.New("it is no longer allowed")
		}
		return fault.Of(cause)
	}
	return err
}

// refuse journals a connection that is refused.
func (a *agent) refuse(e fetch.Endpoint, why string) error {
	return a.connect(a.ctx, e, why, func(context.Context) (*ending, error) {
		return nil, fault.KernelInternal.New("a connection that is refused was begun")
	})
}

// lookedUp journals that a name was looked up that is not allowed on any port.
func (a *agent) lookedUp(e fetch.Endpoint) error {
	_, err := a.Journal(a.ctx, a.pid, schema.NetConnect.With(&schema.NetConnectInput{Host: e.Host()}), func(context.Context) ([]byte, error) {
		return schema.Marshal(&schema.NetConnectOutput{Host: e.Host(), Ended: "the name was only looked up"})
	})
	return err
}
