package daemon

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/daemon/state"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/logging"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// Redacted is what Redact has done to the record.
type Redacted = state.Redacted

// Redact removes a member from an entry of the record, and deletes the snapshots and the index, which
// the next start rebuilds. args are the daemon's flags. No daemon may use the state directory.
func Redact(ctx context.Context, args []string, getenv func(string) string, stderr io.Writer, seq uint64, member string) (r Redacted, err error) {
	cfg, _, err := config.Settings(args, getenv, io.Discard, Version())
	if err != nil {
		return r, err
	}
	if cfg.Origin, err = cfg.Principal(); err != nil {
		return r, err
	}
	cfg.Log.Level = max(cfg.Log.Level, slog.LevelWarn)
	key, err := access.ReadHostKey(access.HostKeyFile(cfg.StateDir))
	if errors.Is(err, fs.ErrNotExist) {
		return r, fault.PlaceNotThere.New("no kernel has been in %s: set PWOS_STATE_DIR to its state directory", cfg.StateDir)
	}
	if err != nil {
		return r, err
	}
	if err := unixsock.CheckPrivateDir(cfg.StateDir); err != nil {
		return r, err
	}
	s, err := state.Open(ctx, &cfg, Version(), key, host.Means{}, logging.New(stderr, logForm(&cfg, getenv)))
	if errors.Is(err, journal.ErrLocked) {
		return r, fault.AuditInUse.New("a kernel runs on %s: end it with \"pwos shutdown\", then redact, then start it again", cfg.StateDir).Wrap(err)
	}
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.Redact(ctx, &cfg, seq, member)
}
