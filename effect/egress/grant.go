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

// grant has the allowed hosts of a token at a tick.
type grant struct {
	token *kernel.Token
	tick  int64
	hosts []fetch.Host
}

// current returns the current grant of the agent. It does not block.
func (a *agent) current() *grant {
	token, tick := a.Tokens.Token(a.pid), a.Tick()
	g := a.grant.Load()
	if g == nil || g.token != token || g.tick != tick {
		g = &grant{token, tick, Hosts(token.Hosts(tick))}
		a.grant.Store(g)
	}
	return g
}

// Hosts parses the host patterns of a capability. It ignores an invalid pattern, so that it allows no host.
func Hosts(patterns []string) []fetch.Host {
	var hosts []fetch.Host
	for _, text := range patterns {
		if h, err := fetch.ParseHost(text); err == nil {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// Admits reports whether the host patterns of a capability allow a connection to a host and port; with port 0, whether they allow
// the host on any port.
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

// bracketed returns a host in the form that may precede a port.
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

// errRevoked is the cause of a connection that ends because its host is no longer allowed.
var errRevoked = errors.New("no longer allowed")

// guarded is work that is canceled when its grant no longer allows it.
type guarded struct {
	allowed func() bool
	cancel  context.CancelCauseFunc
}

// guard returns a context that is canceled when the agent ends, or soon after allowed returns false. The caller must call the
// returned function.
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

// check reports whether the grant still allows the work, and cancels it if not.
func (g *guarded) check() bool {
	if g.allowed() {
		return true
	}
	g.cancel(errRevoked)
	return false
}

// sweepEvery is the interval at which open connections are checked against the grant. Polling is simpler than notification, because
// a token changes with its own grants, those of its granters, time, and the end of processes. Each transfer of data is also checked.
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

// connect journals a connection to e, and calls run after the intent is on disk. refused is the reason to refuse the connection
// regardless of the grant, or "".
func (a *agent) connect(ctx context.Context, e fetch.Endpoint, refused string, run func(context.Context) (*ending, error)) error {
	return a.connected(ctx, &schema.NetConnectInput{Host: e.Host(), Port: int64(e.Port()), Refused: refused}, run)
}

// connected journals a connection, and calls run after the intent is on disk.
func (a *agent) connected(ctx context.Context, in *schema.NetConnectInput, run func(context.Context) (*ending, error)) error {
	in.NetMaker = makerOf(ctx)
	_, err := a.Journal(ctx, a.pid, schema.NetConnect.With(in),
		func(ctx context.Context) ([]byte, error) {
			end, err := run(ctx)
			if err != nil {
				return nil, err
			}
			return schema.Marshal(&schema.NetConnectOutput{
				Host: in.Host, Port: in.Port, Sent: end.sent.Load(), Received: end.received.Load(), Ended: end.why,
			})
		})
	return err
}

// reach journals and dials a connection to a host, and calls run with it. The context of run is canceled when the grant no longer
// allows the host.
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

// why returns the fault for the cause of ctx, or err if ctx is not done.
func (a *agent) why(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(cause, errRevoked) {
			return fault.NetForbidden.New("it is no longer allowed")
		}
		return fault.Of(cause)
	}
	return err
}

// refuse journals a refused connection, and returns its fault.
func (a *agent) refuse(ctx context.Context, e fetch.Endpoint, why string) error {
	return a.connect(ctx, e, why, func(context.Context) (*ending, error) {
		return nil, fault.KernelInternal.New("a connection that is refused was begun")
	})
}

// lookedUp journals the lookup of a name that is not allowed on any port.
func (a *agent) lookedUp(e fetch.Endpoint) error {
	_, err := a.Journal(a.ctx, a.pid, schema.NetConnect.With(&schema.NetConnectInput{Host: e.Host()}), func(context.Context) ([]byte, error) {
		return schema.Marshal(&schema.NetConnectOutput{Host: e.Host(), Ended: "the name was only looked up"})
	})
	return err
}
