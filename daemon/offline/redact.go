package offline

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/blob"
	"github.com/promptware-os/pwos/daemon/lead"
	"github.com/promptware-os/pwos/daemon/state"
	"github.com/promptware-os/pwos/effect/prompts"
	"github.com/promptware-os/pwos/effect/trees"
	"github.com/promptware-os/pwos/host"
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
	cfg, log, err := settings(args, getenv, stderr)
	if err != nil {
		return out, err
	}
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
	s, err := state.Open(ctx, &cfg, version.Build(), key, host.Means{}, log)
	if errors.Is(err, journal.ErrLocked) {
		return out, fault.AuditInUse.New("a kernel runs on %s, and none answers on the socket: set PWOS_RUNTIME_DIR to its runtime directory, or end it", cfg.StateDir).Wrap(err)
	}
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var onBus func(context.Context) (uint64, error)
	if cfg.Cluster.Name != "" {
		h := lead.Host{Config: &cfg, Key: key, Log: log}
		onBus = h.LastOnBus
	}
	dir := cfg.BlobDir()
	steps, texts := filepath.Join(cfg.StateDir, stepsName), filepath.Join(cfg.StateDir, promptsName)
	return s.Redact(ctx, &cfg, seq, member, state.Beside{
		Blobs: dir, Redact: func(ctx context.Context, value []byte) (int, []string, error) { return blob.RedactDir(ctx, dir, value) },
		Steps: steps, Forget: func(ctx context.Context, value []byte) (int, error) {
			removed, err := trees.RedactStores(ctx, steps, value)
			more, promptsErr := prompts.Redact(texts, value)
			return removed + more, errors.Join(err, promptsErr)
		},
		Prompt: func(digest string) (bool, error) { return prompts.Remove(texts, digest) },
	}, onBus)
}
