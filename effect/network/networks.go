// Package network serves the networks of agents that run with --net kernel.
package network

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/promptware-os/pwos/effect/egress"
	"github.com/promptware-os/pwos/effect/login"
	"github.com/promptware-os/pwos/effect/oauth"
	"github.com/promptware-os/pwos/effect/vault"
	"github.com/promptware-os/pwos/internal/replace"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
)

// Options has the settings of Networks.
type Options struct {
	Upstreams []Upstream
	Egress    egress.Config // without Upstreams and Authority, which New sets
	Vault     vault.Vault   // stores the credentials
	RootCAs   *x509.CertPool
	Dialer    oauth.Dialer             // connects to the servers that renew tokens
	Logins    map[string]*login.Keeper // logins that hosts renew, by name

	AuthorityKey string // file of the authority's key for intercepted upstreams; created if it is needed and missing
	Bundle       string // file to write, with the certificates of this authority and of the system
	SeenBundle   string // path of the bundle inside an agent
	Log          *slog.Logger
}

// Upstream is a service whose credential the kernel adds to requests.
type Upstream struct {
	Name   string
	URL    *url.URL
	Header string // with the part of its value before the credential, such as "Authorization: Bearer"
	From   string // key of the sealed credential in memory, or login: and the name of a login
	Env    string // environment variable with its base URL inside an agent, in addition to PWOS_UPSTREAM_NAME, or ""
	Rules  []schema.NetRule

	Headers schema.NetHeaders // of requests that are forwarded; nil: schema.KnownHeaders

	Intercept bool // also answer connections of agents to the host of URL
}

// Login returns the name of the login that the upstream takes, "" if it takes none.
func (u *Upstream) Login() string {
	name, _ := strings.CutPrefix(u.From, "login:")
	if name == u.From {
		return ""
	}
	return name
}

// path returns the prefix of the paths of requests.
func (u *Upstream) path() string { return strings.TrimSuffix(u.URL.EscapedPath(), "/") }

// Networks serves the networks of agents.
type Networks struct {
	Options
	server    *egress.Server
	upstreams map[string]*Upstream
	bundle    string   // SeenBundle, or "" if no upstream is intercepted
	turns     sync.Map // chan struct{} by key of a credential: see oauth.Keeper.Turn
}

// New returns the networks of the configured upstreams. If an upstream is intercepted, it writes the bundle of certificates.
func New(o Options) (*Networks, error) {
	n := &Networks{Options: o, upstreams: make(map[string]*Upstream)}
	var hosts []string
	for i := range o.Upstreams {
		u := &o.Upstreams[i]
		c := egress.UpstreamConfig{
			Name: u.Name, URL: u.URL, Header: u.Header, Intercept: u.Intercept, RootCAs: o.RootCAs, Rules: u.Rules, Headers: u.Headers, Login: u.Login() != "",
			Secret: func(ctx context.Context) (string, error) { return n.secret(ctx, u) },
		}
		if k := o.Logins[u.Login()]; k != nil {
			c.Secret, c.Answered, c.Beside = k.Secret, k.Answered, k.Headers
		}
		made, err := egress.NewUpstream(c)
		if err != nil {
			return nil, fmt.Errorf("configuration: upstream.%s: %w", u.Name, err)
		}
		o.Egress.Upstreams = append(o.Egress.Upstreams, made)
		n.upstreams[u.Name] = u
		if u.Intercept {
			hosts = append(hosts, u.URL.Hostname())
		}
	}
	if len(hosts) > 0 {
		var err error
		if o.Egress.Authority, err = egress.OpenAuthority(o.AuthorityKey, hosts, time.Now); err != nil {
			return nil, err
		}
		n.bundle = o.SeenBundle
		if err := writeBundle(o.Bundle, o.Egress.Authority.Certificate()); err != nil {
			return nil, err
		}
	}
	o.Egress.Limits.All = affordable(o.Egress.Limits.All)
	n.server = egress.New(o.Egress)
	return n, nil
}

// affordable returns the number of connections that agents may have, at most wanted. A connection needs two file descriptors, and all
// of them may use at most half of the limit of this process.
func affordable(wanted int) int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return wanted
	}
	return int(min(uint64(wanted), max(1, uint64(limit.Cur)/4)))
}

// secret returns the opened credential of an upstream, which is in the memory of the kernel's own origin.
// The error for the agent has only the name of the upstream.
func (n *Networks) secret(ctx context.Context, u *Upstream) (string, error) {
	upstream, key, login := u.Name, strings.TrimPrefix(u.From, "/"), u.Login()
	if login != "" {
		key = schema.LoginKey(login)
	}
	secret, err := n.Vault.Open(ctx, key)
	if err != nil {
		n.Log.Warn("credential of an upstream cannot be opened", "upstream", upstream, "from", key, "error", err)
		if login != "" {
			return "", fault.UpstreamNoCredential.New("the kernel holds no login %s that it can open: the operator gives it one with %s", login, quote.Command("pwos", "login", login))
		}
		return "", fault.UpstreamNoCredential.New("the upstream %s has no credential that can be opened: the operator seals one and stores it under the key that upstream.%s.from names",
			upstream, upstream)
	}
	return secret, nil
}

// Own returns the upstream of one program. Its name is that of the program's agent.
func (n *Networks) Own(name string, p *schema.ProgramUpstream) (*egress.Upstream, error) {
	target, err := p.Target()
	if err != nil {
		return nil, err
	}
	if _, taken := n.upstreams[name]; taken {
		return nil, fmt.Errorf("the configuration has an upstream %s: give the agent another name", name)
	}
	turn, _ := n.turns.LoadOrStore(strings.TrimPrefix(p.From, "/"), make(chan struct{}, 1))
	client := oauth.NewClient(target, n.Dialer)
	keeper := &oauth.Keeper{
		Source: client, Name: name, Secure: target.Scheme == "https" || schema.OnLoopback(target.Hostname()), Now: time.Now, Turn: turn.(chan struct{}),
		Fix: fmt.Sprintf("seal another token, and store it as %s", p.From),
		Load: func(ctx context.Context) (string, error) {
			secret, err := n.Vault.Open(ctx, p.From)
			if errors.Is(err, fault.MemoryNotFound) {
				return "", nil
			}
			if err != nil {
				n.Log.Warn("credential of an upstream cannot be opened", "upstream", name, "from", p.From, "error", err)
				return "", fault.UpstreamNoCredential.New("the credential of %s cannot be opened: seal one with the kernel's key, and store it as %s", name, p.From)
			}
			return secret, nil
		},
		Store: func(ctx context.Context, loaded, next string) error {
			return n.Vault.Replace(ctx, p.From, loaded, next)
		},
		Note: func(text string, err error) { n.Log.Warn(text, "upstream", name, "error", err) },
	}
	if entry := strings.TrimPrefix(p.From, "vault/"); schema.MCPAgent(entry) == name {
		keeper.LogIn = []string{"pwos", "mcp", "login", strings.TrimPrefix(entry, "mcp/")}
	}
	return egress.NewUpstream(egress.UpstreamConfig{
		Name: name, URL: target, Header: "Authorization: Bearer", RootCAs: n.RootCAs, Dial: n.Egress.Dial,
		Rules:  []schema.NetRule{{Method: "*", Path: cmp.Or(target.EscapedPath(), "/")}},
		Secret: keeper.Secret, Answered: keeper.Answered, Close: client.Close,
	})
}

// Needs has what is needed to create the network of an agent, and the environment of its programs.
type Needs struct {
	Ports     []uint16 // of the relay
	Locals    []uint16 // services of this machine's loopback
	Upstreams []string // names of the upstreams that need a listener
	Env       map[string]string
	Bundle    string            // file that must be visible inside the agent, or ""
	Logins    map[string]string // its own credentials, by the name of the upstream
}

// Needs returns the needs of the network of pid, which has logins of its own. upstream returns the base URL inside the agent of the
// upstream with an index. A port that is granted later is served only by the proxy; an upstream that is granted later, or whose login is
// given later, only after the next start.
func (n *Networks) Needs(ctx context.Context, pid int64, logins map[string]string, upstream func(index int) string) Needs {
	token, tick := n.Egress.Tokens.Token(pid), n.Egress.Tick()
	p := Needs{Ports: []uint16{80, 443}, Locals: token.Localhosts(tick), Env: map[string]string{}, Logins: map[string]string{}}
	for _, host := range egress.Hosts(token.Hosts(tick)) {
		if port := host.Ported(); port != 0 {
			p.Ports = append(p.Ports, port)
		}
	}
	slices.Sort(p.Ports)
	p.Ports = slices.Compact(p.Ports)
	for _, name := range slices.Sorted(maps.Keys(n.upstreams)) {
		if !token.AllowsUpstream(name, tick) {
			continue
		}
		u := n.upstreams[name]
		if login := u.Login(); login != "" {
			if own, given := logins[login]; given {
				p.Logins[name] = own
			} else if !n.holds(ctx, login) {
				continue // the program uses its own
			}
		}
		base := upstream(len(p.Upstreams)) + u.path()
		p.Upstreams = append(p.Upstreams, name)
		p.Env["PWOS_UPSTREAM_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))] = base
		if u.Env != "" {
			p.Env[u.Env] = base
		}
		if u.Intercept {
			p.Bundle = n.bundle
		}
	}
	if p.Bundle != "" {
		for _, name := range []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"} {
			p.Env[name] = p.Bundle
		}
	}
	return p
}

// holds reports whether the kernel holds a login. Of one that cannot be opened a program is told when it makes a request.
func (n *Networks) holds(ctx context.Context, login string) bool {
	if k := n.Logins[login]; k != nil {
		return k.Held()
	}
	_, err := n.Vault.Open(ctx, schema.LoginKey(login))
	return !errors.Is(err, fault.MemoryNotFound)
}

// Listen listens for the ports that an agent publishes.
func (n *Networks) Listen(ports []string) ([]*egress.Published, error) { return n.server.Listen(ports) }

// Serve serves the sockets of an agent until stop is called.
func (n *Networks) Serve(pid int64, sockets egress.Sockets, own egress.Own) (stop func()) {
	return n.server.Serve(pid, sockets, own)
}

// Close stops serving all agents.
func (n *Networks) Close() {
	if n != nil {
		n.server.Close()
	}
}

// writeBundle writes the certificates of one authority and of the system to a file that agents may read.
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
	if err := replace.File(file, text, 0o644); err != nil {
		return fmt.Errorf("write authorities for agents: %w", err)
	}
	return nil
}
