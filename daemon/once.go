package daemon

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/logging"
	"github.com/promptware-os/pwos/internal/version"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// Once makes one Syscall.Call as the operator on a kernel in this process, if no daemon can be reached or started: CLI mode
// (ABI 7.2). args are flags of the daemon. It uses the same state directory, and leaves it as a daemon that ends cleanly
// does; the next daemon continues running programs.
//
// It returns the data of the reply, or the fault that a client would get. A fault.DaemonLaunch means that the call was not
// made; it wraps ErrRunning if a daemon runs. With authorized keys it fails (401).
func Once(ctx context.Context, args []string, getenv func(string) string, stderr io.Writer, call *schema.CallInput) (data []byte, err error) {
	err = alone(ctx, args, getenv, stderr, func(d *Daemon) error {
		answer, err := d.kernel.Do(ctx, kernel.Own{Request: schema.SyscallCall.With(call)})
		data = answer.Data
		return err
	})
	return data, err
}

// Inline calls talk with a connection of the operator to a kernel in this process (PROTOCOL 8), created as by Once. The
// kernel ends after talk. Frames without a recognizable dialect are answered in the given one. Lines are limited as on that
// dialect's socket.
func Inline(ctx context.Context, args []string, getenv func(string) string, stderr io.Writer, dialect schema.Dialect, talk func(*net.UnixConn) error) error {
	return alone(ctx, args, getenv, stderr, func(d *Daemon) error {
		ours, theirs, err := unixsock.Pair()
		if err != nil {
			return err
		}
		limit := d.config.Limits.LineBytes
		if dialect == schema.OsEvent {
			limit = max(limit, schema.MaxEventLine)
		}
		conn, err := unixsock.NewConn(theirs, dialect, limit)
		if err != nil {
			return errors.Join(err, ours.Close(), theirs.Close())
		}
		ended := make(chan struct{})
		d.kernel.Serve(conn.Link(), kernel.Caller{PID: kernel.Operator, Conn: "inline", Via: "inline"}, func() {
			defer close(ended)
			_ = conn.Close() // its other end is closed
		})
		err = talk(ours)
		_ = ours.Close() // talk may have closed it
		<-ended
		return err
	})
}

// alone calls use with a kernel in this process.
func alone(ctx context.Context, args []string, getenv func(string) string, stderr io.Writer, use func(*Daemon) error) (err error) {
	cfg, _, err := config.Settings(args, getenv, io.Discard, version.Build())
	if err != nil {
		return notMade(err)
	}
	if cfg.AuthorizedKeys != "" {
		return fault.AuthRequired.New("this kernel admits only authorized keys, which needs a daemon: start it with pwosd")
	}
	cfg.Log.Level = max(cfg.Log.Level, slog.LevelWarn)
	cfg.RuntimeDir = filepath.Join(cfg.StateDir, "cli") // the usual one may be the reason that no daemon runs
	cfg.Listen = config.Listen{}
	d := New(cfg, nil, logging.New(stderr, cfg.LogForm(getenv)))
	d.once = true
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := d.bootOnce(ctx); err != nil {
		return notMade(err)
	}
	return use(d)
}

func notMade(err error) error { return fault.DaemonLaunch.New("%s", err.Error()).Wrap(err) }

func (d *Daemon) bootOnce(ctx context.Context) (err error) {
	for _, dir := range []string{d.config.StateDir, d.config.RuntimeDir} {
		if err := unixsock.EnsurePrivateDir(dir); err != nil {
			return err
		}
	}
	if d.lock, err = unixsock.AcquireInstanceLock(unixsock.PlacesIn(d.config.RuntimeDir).Lock); err != nil {
		return running(err)
	}
	if err = d.boot(ctx); errors.Is(err, journal.ErrLocked) {
		return errors.Join(ErrRunning, err)
	}
	return err
}
