package daemon

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/blob"
	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/daemon/state"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/logging"
	"github.com/promptware-os/pwos/internal/version"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// Redact removes a member from an entry of the journal, and deletes the snapshots and the index, which the next start
// rebuilds. args are the daemon's flags. It returns a fault.AuditInUse if a kernel runs on the state directory;
// Audit.Redact is for that case.
func Redact(ctx context.Context, args []string, getenv func(string) string, stderr io.Writer, seq uint64, member string) (out schema.AuditRedactOutput, err error) {
	cfg, _, err := config.Settings(args, getenv, io.Discard, version.Build())
	if err != nil {
		return out, err
	}
	if cfg.Origin, err = cfg.Principal(); err != nil {
		return out, err
	}
	cfg.Log.Level = max(cfg.Log.Level, slog.LevelWarn)
	key, err := access.ReadHostKey(access.HostKeyFile(cfg.StateDir))
	if errors.Is(err, fs.ErrNotExist) {
		return out, fault.PlaceNotThere.New("no kernel has been in %s: set PWOS_STATE_DIR to its state directory", cfg.StateDir)
	}
	if err != nil {
		return out, err
	}
	if err := unixsock.CheckPrivateDir(cfg.StateDir); err != nil {
		return out, err
	}
	s, err := state.Open(ctx, &cfg, version.Build(), key, host.Means{}, logging.New(stderr, logForm(&cfg, getenv)))
	if errors.Is(err, journal.ErrLocked) {
		return out, fault.AuditInUse.New("a kernel runs on %s, and none answers on the socket: set PWOS_RUNTIME_DIR to its runtime directory, or end it", cfg.StateDir).Wrap(err)
	}
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var onBus func(context.Context) (uint64, error)
	if cfg.Cluster.Name != "" {
		onBus = func(ctx context.Context) (uint64, error) { return lastOnBus(ctx, &cfg, key) }
	}
	dir := blobDir(&cfg)
	return s.Redact(ctx, &cfg, seq, member, state.Blobs{Dir: dir, Redact: func(ctx context.Context, value []byte) (int, []string, error) {
		return blob.RedactDir(ctx, dir, value)
	}}, onBus)
}

// lastOnBus returns the last entry of the kernel that the bus has; 0: none.
func lastOnBus(ctx context.Context, cfg *config.Config, key *access.HostKey) (uint64, error) {
	ctx, stop := context.WithTimeout(ctx, busPatience)
	defer stop()
	c := &cfg.Cluster
	conn, js, err := cluster.Dial(ctx, cluster.Options{Name: c.Name, Servers: c.Bus, Authority: c.Authority, Key: key, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	last, err := cluster.LastCheckpoint(ctx, js, c.Name)
	if err != nil || last == nil {
		return 0, err
	}
	return last.Seq, nil
}
