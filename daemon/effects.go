package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/promptware-os/pwos/access/keyed"
	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/blob"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/daemon/state"
	"github.com/promptware-os/pwos/effect/egress"
	"github.com/promptware-os/pwos/effect/login"
	"github.com/promptware-os/pwos/effect/network"
	"github.com/promptware-os/pwos/effect/price"
	"github.com/promptware-os/pwos/effect/vault"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// openBlobs opens the blob directory. The caller must hold the instance lock.
func openBlobs(cfg *config.Config, log *slog.Logger) (*blob.Directory, error) {
	return blob.Open(blob.Options{
		Dir: cfg.BlobDir(), Origin: cfg.Origin,
		FileBytes: cfg.Blobs.FileBytes, DirBytes: cfg.Blobs.DirBytes, DirFiles: cfg.Blobs.DirFiles, Share: cfg.Blobs.Share, TTL: time.Duration(cfg.Blobs.TTL),
	}, log)
}

// newKeyed creates signature mode. It must be called before the first call.
func newKeyed(cfg *config.Config, s *state.State, k *actors.Kernel, log *slog.Logger) (*keyed.Mode, error) {
	signer, err := s.HostKey.Signer()
	if err != nil {
		return nil, fmt.Errorf("use host key: %w", err)
	}
	return keyed.New(keyed.Options{
		Keys: cfg.AuthorizedKeys, Host: signer, Kernel: k, Processes: s.Processes.Processes(), Tokens: s.Tokens, Living: s.Processes.Living,
		Pools: s.Pools, Origin: cfg.Origin, Note: k.Note, Log: log,
	})
}

// newMembers finds the processes of other kernels. It must be called before the first call.
func newMembers(cfg *config.Config, s *state.State, k *actors.Kernel) *keyed.Members {
	return keyed.NewMembers(keyed.Options{
		Kernel: k, Processes: s.Processes.Processes(), Tokens: s.Tokens, Living: s.Processes.Living, Pools: s.Pools, Origin: cfg.Origin,
	})
}

// makers knows who makes the connections of agents.
type makers interface {
	// maker is what egress.Maker does.
	maker(pid int64, client, server netip.AddrPort) schema.NetMaker
	// cause returns the id of the message behind a connection; "": it is not known.
	cause(pid int64, request any) string
	// connected is told where an agent has connected to, or was refused to.
	connected(pid int64, request any, refused bool)
}

// newNetworks creates the networks of agents.
func newNetworks(cfg *config.Config, s *state.State, k *actors.Kernel, who makers, start login.Start, log *slog.Logger) (*network.Networks, error) {
	places := unixsock.PlacesIn(cfg.RuntimeDir)
	logins := make(map[string]*login.Keeper)
	for _, home := range login.Homes(real(cfg.StateDir)) {
		logins[home.Name] = login.NewKeeper(home, start, log.With("component", "login"))
	}
	o := network.Options{
		Logins:  logins,
		Vault:   vault.Vault{Key: s.Seal, Host: s.Variables.Held(), Kernel: k},
		RootCAs: s.Web.RootCAs(), Dialer: s.Web, AuthorityKey: filepath.Join(cfg.StateDir, "upstream_ca_key"),
		Bundle: filepath.Join(insideDir(places), bundleName), SeenBundle: filepath.Join(places.Dir, bundleName), Log: log.With("component", "egress"),
		Egress: egress.Config{
			Tokens: s.Tokens, Tick: k.Tick, Dial: s.Web.Dial, Log: log, Metered: s.Budgets.Metered, Maker: who.maker, Prices: price.Configured(cfg.Prices),
			Limits: egress.Limits{Each: cfg.Net.Each, All: cfg.Net.All, Idle: time.Duration(cfg.Net.Idle)},
			Journal: func(ctx context.Context, pid int64, request schema.Request, run func(context.Context) ([]byte, error)) ([]byte, error) {
				ran := false
				answer, err := k.Do(ctx, kernel.Own{
					Caller: kernel.Caller{PID: pid, Kernel: true, Via: "channel"}, Request: request, Causation: who.cause(pid, request.Input),
					Run: func(ctx context.Context, _ *kernel.Job) ([]byte, error) {
						ran = true
						who.connected(pid, request.Input, false)
						return run(ctx)
					},
				})
				if !ran { // Do has waited for Run
					who.connected(pid, request.Input, true)
				}
				return answer.Data, err
			},
		},
	}
	all := cfg.Upstreams()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		settings := all[name]
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
		if u.Headers, err = schema.ParseNetHeaders(settings.Headers); err != nil {
			return nil, fmt.Errorf("configuration: upstream.%s: %w", name, err)
		}
		o.Upstreams = append(o.Upstreams, u)
	}
	return network.New(o)
}

// placeOf returns where an agent connects to, or "", and which program does it.
func placeOf(input any) (string, schema.NetMaker) {
	switch in := input.(type) {
	case *schema.NetConnectInput:
		if in.Port > 0 { // else it only looks up a name
			return net.JoinHostPort(in.Host, strconv.FormatInt(in.Port, 10)), in.NetMaker
		}
	case *schema.NetRequestInput:
		return in.Upstream + ": " + in.Method + " " + in.Path, in.NetMaker
	}
	return "", schema.NetMaker{}
}

// bundleName is the file of the certificate authorities that agents trust in addition to the
// system's.
const bundleName = "ca-bundle.pem"

// syncEvery returns how long an answered command may be missing on disk; 0: never.
func syncEvery(j config.Journal) time.Duration {
	if j.Sync == config.Interval {
		return time.Duration(j.SyncInterval)
	}
	return 0
}
