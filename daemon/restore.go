package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/daemon/state"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/logging"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// Restored is what Restore has made of a state directory.
type Restored = state.Restored

// Restore makes a kernel of its own of a copied state directory: a new epoch with a new host key, which the next entry of the
// record names. The programs of its agents are held where agents is false; called again with it, they are let go. args
// are the daemon's flags. No daemon may run on the directory.
func Restore(ctx context.Context, args []string, getenv func(string) string, stderr io.Writer, agents bool) (r Restored, err error) {
	cfg, _, err := config.Settings(args, getenv, io.Discard, Version())
	if err != nil {
		return r, err
	}
	if cfg.Origin, err = cfg.Principal(); err != nil {
		return r, err
	}
	cfg.Log.Level = max(cfg.Log.Level, slog.LevelWarn)
	if err := unixsock.CheckPrivateDir(cfg.StateDir); err != nil {
		return r, err
	}
	// Unsigned: the key of the epoch before is not this one's to sign with.
	s, err := state.Open(ctx, &cfg, Version(), nil, host.Means{}, logging.New(stderr, logForm(&cfg, getenv)))
	if errors.Is(err, journal.ErrLocked) {
		return r, fmt.Errorf("a kernel runs on %s: end it with \"pwos shutdown\" first: %w", cfg.StateDir, err)
	}
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.RestoreHere(&cfg, agents)
}
