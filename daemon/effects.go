package daemon

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/promptware-os/pwos/access/keyed"
	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/blob"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/effect/egress"
	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/effect/network"
	"github.com/promptware-os/pwos/effect/vault"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// newFetcher makes what fetches as the configuration says.
func newFetcher(cfg *config.HTTP) (*fetch.Fetcher, error) {
	o := fetch.Options{UserAgent: "pwos/" + Version(), Limits: fetch.Limits{WireBytes: cfg.MaxBodyBytes, BodyBytes: cfg.MaxBodyBytes}}
	for _, text := range cfg.Allow {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("configuration: http.allow: %w", err)
		}
		o.Allow = append(o.Allow, prefix)
	}
	for _, text := range cfg.AllowHosts {
		host, err := fetch.ParseHost(text)
		if err != nil {
			return nil, fmt.Errorf("configuration: http.allow_hosts: %w", err)
		}
		o.AllowHosts = append(o.AllowHosts, host)
	}
	if cfg.CAFile != "" {
		text, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return nil, fmt.Errorf("configuration: http.ca_file: %w", err)
		}
		if o.RootCAs, err = x509.SystemCertPool(); err != nil {
			o.RootCAs = x509.NewCertPool()
		}
		if !o.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("configuration: http.ca_file: %s holds no certificate", cfg.CAFile)
		}
	}
	return fetch.New(o), nil
}

// openBlobs opens the blob directory. The instance lock must be held.
func openBlobs(cfg *config.Config, log *slog.Logger) (*blob.Directory, error) {
	return blob.Open(blob.Options{
		Dir: filepath.Join(cfg.RuntimeDir, "blobs"), Origin: cfg.Origin,
		FileBytes: cfg.Blobs.FileBytes, DirBytes: cfg.Blobs.DirBytes, DirFiles: cfg.Blobs.DirFiles, TTL: time.Duration(cfg.Blobs.TTL),
	}, log)
}

// newKeyed makes signature mode, before anybody calls the kernel.
func newKeyed(cfg *config.Config, s *state, k *actors.Kernel, log *slog.Logger) (*keyed.Mode, error) {
	signer, err := s.host.Signer()
	if err != nil {
		return nil, fmt.Errorf("use host key: %w", err)
	}
	return keyed.New(keyed.Options{
		Keys: cfg.AuthorizedKeys, Host: signer, Kernel: k, Processes: s.processes.Processes(), Tokens: s.tokens, Living: s.processes.Living,
		Pools: s.pools, Origin: cfg.Origin, Note: k.Note, Log: log,
	})
}

// newNetworks makes the networks of agents, of a kernel that can be called soon.
func newNetworks(cfg *config.Config, s *state, k *actors.Kernel, log *slog.Logger) (*network.Networks, error) {
	places := unixsock.PlacesIn(cfg.RuntimeDir)
	o := network.Options{
		Vault:   vault.Vault{Key: s.seal, Do: func(ctx context.Context, r schema.Request) ([]byte, error) { return k.DoUntil(ctx, "", r) }},
		RootCAs: s.web.RootCAs(), Dialer: s.web, AuthorityKey: filepath.Join(cfg.StateDir, "upstream_ca_key"),
		Bundle: filepath.Join(insideDir(places), bundleName), SeenBundle: filepath.Join(places.Dir, bundleName), Log: log.With("component", "egress"),
		Egress: egress.Config{
			Tokens: s.tokens, Tick: k.Tick, Dial: s.web.Dial, Log: log, Metered: s.budgets.Metered, Prices: prices(cfg.Prices),
			Limits: egress.Limits{Each: cfg.Net.Each, All: cfg.Net.All, Idle: time.Duration(cfg.Net.Idle)},
			Journal: func(ctx context.Context, pid int64, request schema.Request, run func(context.Context) ([]byte, error)) ([]byte, error) {
				return k.Act(ctx, pid, request, func(ctx context.Context, _ *kernel.Job) ([]byte, error) { return run(ctx) })
			},
		},
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Upstream)) {
		settings := cfg.Upstream[name]
		u := network.Upstream{Name: name, Header: settings.Header, From: settings.From, Env: settings.Env, Intercept: settings.Intercept}
		var err error
		if u.URL, err = settings.Target(); err != nil {
			return nil, fmt.Errorf("configuration: upstream.%s: %w", name, err)
		}
		for _, text := range settings.Allow {
			rule, err := schema.ParseNetRule(text)
			if err != nil {
				return nil, fmt.Errorf("configuration: upstream.%s: %w", name, err)
			}
			u.Rules = append(u.Rules, rule)
		}
		o.Upstreams = append(o.Upstreams, u)
	}
	return network.New(o)
}

// bundleName is the file of the authorities that agents trust beside the system's.
const bundleName = "ca-bundle.pem"

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
