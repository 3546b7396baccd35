package daemon

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// Once makes one Syscall.Call as the operator on a kernel in this process, for who reaches no daemon and can start none: CLI
// mode (ABI 7.2). args are flags of the daemon's. It works on the same state, and leaves it as a daemon that ended in good order
// does; what would have to go on afterwards, such as a program that was running, is left to the next daemon.
//
// It returns the data of the reply, or the *schema.Error that a client would get. An error that wraps ErrRunning says that the
// state is a running daemon's. Where keys are authorized, nobody is let in this way (401).
func Once(ctx context.Context, args []string, getenv func(string) string, stderr io.Writer, call *schema.CallInput) (data []byte, err error) {
	cfg, _, err := settings(args, getenv, io.Discard)
	if err != nil {
		return nil, err
	}
	if cfg.AuthorizedKeys != "" {
		return nil, schema.Errorf(schema.Unauthenticated, "this kernel lets in holders of authorized keys alone, which takes a daemon: start it with pwosd")
	}
	cfg.Log.Level = max(cfg.Log.Level, slog.LevelWarn)
	cfg.RuntimeDir = filepath.Join(cfg.StateDir, "cli") // the usual one may be what is wrong
	d := New(cfg, nil, newLog(stderr, cfg.Log, getenv))
	d.once = true
	defer func() { err = errors.Join(err, d.Close()) }()
	for _, dir := range []string{cfg.StateDir, cfg.RuntimeDir} {
		if err := unixsock.EnsurePrivateDir(dir); err != nil {
			return nil, err
		}
	}
	if d.lock, err = unixsock.AcquireInstanceLock(unixsock.PlacesIn(cfg.RuntimeDir).Lock); err != nil {
		return nil, running(err)
	}
	switch err := d.boot(ctx); {
	case errors.Is(err, journal.ErrLocked):
		return nil, errors.Join(ErrRunning, err)
	case err != nil:
		return nil, err
	}
	return d.kernel.DoUntil(ctx, "", schema.CallType, call)
}

// Parameters returns the root and the origin, in its normal form, of a daemon that were started with the given flags.
func Parameters(args []string, getenv func(string) string) (root, origin string, err error) {
	cfg, _, err := settings(args, getenv, io.Discard)
	if err != nil {
		return "", "", err
	}
	origin, err = cfg.Principal()
	return cfg.Root, origin, err
}
