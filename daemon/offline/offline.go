// Package offline works on a state directory that no daemon uses. It also answers what a daemon of a configuration would do.
package offline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/daemon/lead"
	"github.com/promptware-os/pwos/daemon/state"
	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/logging"
	"github.com/promptware-os/pwos/internal/version"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/policy"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// Fetcher returns the fetcher of a daemon with the given flags, with the configuration's address rules and
// authorities.
func Fetcher(args []string, getenv func(string) string) (*fetch.Fetcher, error) {
	cfg, _, err := config.Settings(args, getenv, io.Discard, version.Build())
	if err != nil {
		return nil, err
	}
	return state.Fetcher(&cfg.HTTP, version.Build())
}

// Parameters returns the root and the normalized origin of a daemon with the given flags.
func Parameters(args []string, getenv func(string) string) (root, origin string, err error) {
	cfg, _, err := config.Settings(args, getenv, io.Discard, version.Build())
	if err != nil {
		return "", "", err
	}
	origin, err = cfg.Principal()
	return cfg.Root, origin, err
}

// noIdentities is the view of a kernel in which no process has adopted a resource.
type noIdentities struct{}

func (noIdentities) Adopted(int64, string) *schema.Identity { return nil }

// PolicyForms returns the forms in which a kernel with that configuration judges names and addresses. In it, no
// process has adopted a resource.
func PolicyForms(path string, getenv func(string) string) (policy.Forms, error) {
	cfg := config.Default(getenv, 0, "/")
	if err := cfg.Load(path, false, getenv); err != nil {
		return policy.Forms{}, err
	}
	space, err := cfg.Space()
	if err != nil {
		return policy.Forms{}, err
	}
	return policy.Forms{URL: fetch.Normal, Names: state.Names{Space: space, Adopted: noIdentities{}}}, nil
}

// Restore turns a copied state directory into a kernel of its own: a new epoch with a new host key, which the
// record's next entry names. The programs of its agents are not started unless agents is true; a second call with
// it allows them. args are the daemon's flags. No daemon may use the directory.
func Restore(ctx context.Context, args []string, getenv func(string) string, stderr io.Writer, agents bool) (r state.Restored, err error) {
	cfg, log, err := settings(args, getenv, stderr)
	if err != nil {
		return r, err
	}
	if err := unixsock.CheckPrivateDir(cfg.StateDir); err != nil {
		return r, err
	}
	// Unsigned: this is not the key of the last epoch.
	s, err := state.Open(ctx, &cfg, version.Build(), nil, host.Means{}, log)
	if errors.Is(err, journal.ErrLocked) {
		return r, fmt.Errorf("a kernel runs on %s: end it with \"pwos shutdown\" first: %w", cfg.StateDir, err)
	}
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.RestoreHere(&cfg, agents)
}

// TakeOver makes this environment's host the leader of its configuration's kernel. args are the daemon's flags. No daemon may use
// the state directory.
func TakeOver(ctx context.Context, args []string, getenv func(string) string, stderr io.Writer, acceptLoss bool) (t lead.TakenOver, err error) {
	cfg, log, err := settings(args, getenv, stderr)
	if err != nil {
		return t, err
	}
	if err := unixsock.EnsurePrivateDir(cfg.StateDir); err != nil {
		return t, err
	}
	h := lead.Host{Config: &cfg, Log: log}
	if h.Key, err = access.OpenHostKey(cfg.StateDir); err != nil {
		return t, err
	}
	return h.TakeOver(ctx, acceptLoss)
}

// settings are those of a daemon with the given flags, and a log of what goes wrong.
func settings(args []string, getenv func(string) string, stderr io.Writer) (cfg config.Config, log *slog.Logger, err error) {
	if cfg, _, err = config.Settings(args, getenv, io.Discard, version.Build()); err != nil {
		return cfg, nil, err
	}
	if cfg.Origin, err = cfg.Principal(); err != nil {
		return cfg, nil, err
	}
	cfg.Log.Level = max(cfg.Log.Level, slog.LevelWarn)
	return cfg, logging.New(stderr, cfg.LogForm(getenv)), nil
}
