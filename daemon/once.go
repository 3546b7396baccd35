package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/daemon/state"
	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/logging"
	"github.com/promptware-os/pwos/internal/version"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/policy"
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
		var err error
		data, err = d.kernel.DoUntil(ctx, "", schema.SyscallCall.With(call))
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
	d := New(cfg, nil, logging.New(stderr, logForm(&cfg, getenv)))
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

// Fetcher returns the fetcher of a daemon with the given flags. It has the address rules and authorities of the
// configuration.
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

// noIdentities implements the view of a kernel in which no process has adopted a resource.
type noIdentities struct{}

func (noIdentities) Adopted(int64, string) *schema.Identity { return nil }

// PolicyForms returns the forms in which a kernel with that configuration judges names and addresses, while no process has
// adopted a resource.
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

// Restored is the result of Restore.
type Restored = state.Restored

// Restore turns a copied state directory into another kernel: it begins a new epoch with a new host key, which the next
// entry of the journal names. The programs of its agents are started only if agents is true, in this or a second call. args
// are the daemon's flags. No daemon may use the directory.
func Restore(ctx context.Context, args []string, getenv func(string) string, stderr io.Writer, agents bool) (r Restored, err error) {
	cfg, _, err := config.Settings(args, getenv, io.Discard, version.Build())
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
	// Unsigned: this is not the key of the previous epoch.
	s, err := state.Open(ctx, &cfg, version.Build(), nil, host.Means{}, logging.New(stderr, logForm(&cfg, getenv)))
	if errors.Is(err, journal.ErrLocked) {
		return r, fmt.Errorf("a kernel runs on %s: end it with \"pwos shutdown\" first: %w", cfg.StateDir, err)
	}
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.RestoreHere(&cfg, agents)
}
