package daemon

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/effect/egress"
	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/effect/oauth"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// networks serves the networks of agents that have --net kernel.
type networks struct {
	web       *fetch.Runner
	server    *egress.Server
	kernel    *actors.Kernel
	tokens    kernel.Tokens
	identity  *identity
	upstreams map[string]upstream
	bundle    string // file of the authorities that agents of intercepted upstreams trust; "": none is intercepted
	log       *slog.Logger

	turns sync.Map // *sync.Mutex by the key of a login: held while that is renewed
}

// upstream is one of the configuration, with what begins its paths.
type upstream struct {
	config.Upstream
	path string
}

// newNetworks needs a kernel that can be called soon.
func newNetworks(cfg *config.Config, s *state, k *actors.Kernel, log *slog.Logger) (*networks, error) {
	n := &networks{web: s.web, kernel: k, tokens: s.tokens, identity: s.identity, upstreams: map[string]upstream{}, log: log.With("component", "egress")}
	var upstreams []*egress.Upstream
	var hosts []string
	for _, name := range slices.Sorted(maps.Keys(cfg.Upstream)) {
		settings := cfg.Upstream[name]
		u, err := n.make(name, &settings, s.web.RootCAs())
		if err != nil {
			return nil, fmt.Errorf("configuration: upstream.%s: %w", name, err)
		}
		upstreams = append(upstreams, u)
		n.upstreams[name] = upstream{settings, strings.TrimSuffix(u.URL.EscapedPath(), "/")}
		if settings.Intercept {
			hosts = append(hosts, u.URL.Hostname())
		}
	}
	var authority *egress.Authority
	if len(hosts) > 0 {
		var err error
		if authority, err = egress.OpenAuthority(filepath.Join(cfg.StateDir, "upstream_ca_key"), hosts, time.Now); err != nil {
			return nil, err
		}
		places := unixsock.PlacesIn(cfg.RuntimeDir)
		n.bundle = filepath.Join(places.Dir, bundleName) // where an agent sees what lies in insideDir
		if err := writeBundle(filepath.Join(insideDir(places), bundleName), authority.Certificate()); err != nil {
			return nil, err
		}
	}
	n.server = egress.New(egress.Config{
		Tokens: s.tokens, Tick: k.Tick, Dial: s.web.Dial, Upstreams: upstreams, Authority: authority, Log: log,
		Metered: s.budgets.Metered, Prices: prices(cfg.Prices),
		Limits: egress.Limits{Each: cfg.Net.Each, All: affordable(cfg.Net.All), Idle: time.Duration(cfg.Net.Idle)},
		Journal: func(ctx context.Context, pid int64, request schema.Request, run func(context.Context) ([]byte, error)) ([]byte, error) {
			return k.Act(ctx, pid, request, func(ctx context.Context, _ *kernel.Job) ([]byte, error) { return run(ctx) })
		},
	})
	return n, nil
}

// prices are those of the configuration: of a million tokens of prompts and of answers, and of prompts from a cache and into it, which
// are those of prompts where there are only two.
func prices(given map[string][]float64) egress.Prices {
	p := make(egress.Prices, len(given))
	for model, usd := range given {
		price := egress.Price{Input: usd[0], Output: usd[1], CacheRead: usd[0], CacheWrite: usd[0]}
		if len(usd) == 4 {
			price.CacheRead, price.CacheWrite = usd[2], usd[3]
		}
		p[model] = price
	}
	return p
}

// affordable is how many connections agents may have without taking more than half of the descriptors, two each, that this
// process may open.
func affordable(wanted int) int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return wanted
	}
	return int(min(uint64(wanted), max(1, uint64(limit.Cur)/4)))
}

func (n *networks) make(name string, settings *config.Upstream, rootCAs *x509.CertPool) (*egress.Upstream, error) {
	target, err := settings.Target()
	if err != nil {
		return nil, err
	}
	c := egress.UpstreamConfig{
		Name: name, URL: target, Header: settings.Header, Intercept: settings.Intercept, RootCAs: rootCAs,
		Secret: func(ctx context.Context) (string, error) { return n.secret(ctx, name, settings.From) },
	}
	for _, text := range settings.Allow {
		rule, err := schema.ParseNetRule(text)
		if err != nil {
			return nil, err
		}
		c.Rules = append(c.Rules, rule)
	}
	return egress.NewUpstream(c)
}

// secret opens the credential of an upstream, which lies in the memory of the kernel's own origin. What the agent is told names
// no more than the upstream.
func (n *networks) secret(ctx context.Context, upstream, key string) (string, error) {
	secret, err := n.open(ctx, strings.TrimPrefix(key, "/"))
	if err != nil {
		n.log.Warn("credential of an upstream cannot be opened", "upstream", upstream, "from", key, "error", err)
		return "", fault.UpstreamNoCredential.New("the upstream %s has no credential that can be opened: the operator seals one and stores it under the key that upstream.%s.from names",
			upstream, upstream)
	}
	return secret, nil
}

func (n *networks) open(ctx context.Context, key string) (string, error) {
	data, err := n.kernel.DoUntil(ctx, "", schema.MemoryGet.With(&schema.MemoryGetInput{Key: key}))
	if err != nil {
		return "", err
	}
	sealed, invalid := schema.TypeOf[string]().Decode(data)
	if invalid != nil {
		return "", invalid
	}
	sealer, err := n.identity.await(ctx)
	if err != nil {
		return "", err
	}
	text, aad, err := sealer.Open(*sealed.(*string))
	if err != nil {
		return "", err
	}
	defer clear(text)
	if len(aad) > 0 && strings.TrimPrefix(string(aad), "/") != key {
		return "", errors.New("it is sealed for something else")
	}
	secret := strings.TrimRight(string(text), "\r\n")
	if secret == "" || strings.ContainsFunc(secret, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", errors.New("it is empty or has a control character, so that no header can hold it")
	}
	return secret, nil
}

// own returns the upstream that a program alone has. It bears the name of the program's agent.
func (n *networks) own(name string, p *schema.ProgramUpstream) (*egress.Upstream, error) {
	target, err := p.Target()
	if err != nil {
		return nil, err
	}
	if _, taken := n.upstreams[name]; taken {
		return nil, fmt.Errorf("the configuration has an upstream %s: give the agent another name", name)
	}
	turn, _ := n.turns.LoadOrStore(strings.TrimPrefix(p.From, "/"), new(sync.Mutex))
	keeper := &oauth.Keeper{
		Client: oauth.NewClient(target, n.web), Name: name, Secure: target.Scheme == "https" || config.OnLoopback(target.Hostname()), Now: time.Now, Turn: turn.(*sync.Mutex),
		Fix: fmt.Sprintf("seal another token, and store it as %s", p.From),
		Load: func(ctx context.Context) (string, error) {
			secret, err := n.open(ctx, p.From)
			if errors.Is(err, fault.MemoryNotFound) {
				return "", nil
			}
			if err != nil {
				n.log.Warn("credential of an upstream cannot be opened", "upstream", name, "from", p.From, "error", err)
				return "", fault.UpstreamNoCredential.New("the credential of %s cannot be opened: seal one with the kernel's key, and store it as %s", name, p.From)
			}
			return secret, nil
		},
		Store: func(ctx context.Context, loaded, next string) error { return n.replace(ctx, p.From, loaded, next) },
		Note:  func(text string, err error) { n.log.Warn(text, "upstream", name, "error", err) },
	}
	if entry := strings.TrimPrefix(p.From, "vault/"); schema.MCPAgent(entry) == name {
		keeper.LogIn = "pwos mcp login " + strings.TrimPrefix(entry, "mcp/")
	}
	return egress.NewUpstream(egress.UpstreamConfig{
		Name: name, URL: target, Header: "Authorization: Bearer", RootCAs: n.web.RootCAs(), Dial: n.web.Dial,
		Rules:  []schema.NetRule{{Method: "*", Path: cmp.Or(target.EscapedPath(), "/")}},
		Secret: keeper.Secret, Answered: keeper.Answered, Close: keeper.Client.Close,
	})
}

// replace stores a secret in the place of another.
func (n *networks) replace(ctx context.Context, key, before, next string) error {
	data, err := n.kernel.DoUntil(ctx, "", schema.MemoryGet.With(&schema.MemoryGetInput{Key: key}))
	if err != nil {
		return err
	}
	if is, err := n.open(ctx, key); err != nil || is != before {
		return errors.Join(errors.New("it was replaced meanwhile"), err)
	}
	sealer, err := n.identity.await(ctx)
	if err != nil {
		return err
	}
	sealed, err := sealer.Seal([]byte(next), []byte(key))
	if err != nil {
		return err
	}
	value, err := schema.Marshal(sealed)
	if err != nil {
		return err
	}
	_, err = n.kernel.DoUntil(ctx, "", schema.MemoryCompareAndSet.With(&schema.MemoryCompareAndSetInput{
		MemorySetInput: schema.MemorySetInput{Key: key, Value: value}, Expected: data,
	}))
	return err
}

// needs are what an agent's network needs before it is made, and how its programs find what it has beside the proxy.
type needs struct {
	ports     []uint16 // that hosts are reached on
	upstreams []string // by name; each has a listener
	env       map[string]string
	bundle    string // file that the agent has to see; "": none
}

// needs returns what the network of pid needs, where the upstream with an index has the given address inside. Ports that are
// granted later are served by the proxy alone, upstreams from the next start on.
func (n *networks) needs(pid int64, upstream func(index int) string) needs {
	token, tick := n.tokens.Token(pid), n.kernel.Tick()
	p := needs{ports: []uint16{80, 443}, env: map[string]string{}}
	for _, host := range egress.Hosts(token.Hosts(tick)) {
		if port := host.Ported(); port != 0 {
			p.ports = append(p.ports, port)
		}
	}
	slices.Sort(p.ports)
	p.ports = slices.Compact(p.ports)
	for _, name := range slices.Sorted(maps.Keys(n.upstreams)) {
		if !token.AllowsUpstream(name, tick) {
			continue
		}
		u := n.upstreams[name]
		base := upstream(len(p.upstreams)) + u.path
		p.upstreams = append(p.upstreams, name)
		p.env["PWOS_UPSTREAM_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))] = base
		if u.Env != "" {
			p.env[u.Env] = base
		}
		if u.Intercept {
			p.bundle = n.bundle
		}
	}
	if p.bundle != "" {
		for _, name := range []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"} {
			p.env[name] = p.bundle
		}
	}
	return p
}

// serve serves the sockets of an agent until stop is called.
func (n *networks) serve(pid int64, sockets egress.Sockets, own ...*egress.Upstream) (stop func()) {
	return n.server.Serve(pid, sockets, own...)
}

// close ends what is served still.
func (n *networks) close() {
	if n != nil {
		n.server.Close()
	}
}

// bundleName is the file of the authorities that agents trust beside the system's.
const bundleName = "ca-bundle.pem"

// writeBundle writes the system's authorities and one more into a file that an agent may read.
func writeBundle(file string, authority []byte) error {
	text := slices.Clone(authority)
	for _, system := range []string{
		"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
	} {
		if roots, err := os.ReadFile(system); err == nil {
			text = append(append(text, '\n'), roots...)
			break
		}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("write authorities for agents: %w", err)
	}
	next := file + ".new"
	if err := os.WriteFile(next, text, 0o644); err != nil {
		return fmt.Errorf("write authorities for agents: %w", err)
	}
	return os.Rename(next, file)
}
