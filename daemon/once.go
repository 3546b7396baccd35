package daemon

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/daemon/state"
	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/internal/logging"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/policy"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// Once makes one Syscall.Call as the operator on a kernel in this process, for who reaches no daemon and can start none: CLI
// mode (ABI 7.2). args are flags of the daemon's. It works on the same state, and leaves it as a daemon that ended in good order
// does; what would have to go on afterwards, such as a program that was running, is left to the next daemon.
//
// It returns the data of the reply, or the fault that a client would get. A fault.DaemonLaunch says that the call was not made;
// where it wraps ErrRunning, since the state is a running daemon's. Where keys are authorized, nobody is let in this way (401).
func Once(ctx context.Context, args []string, getenv func(string) string, stderr io.Writer, call *schema.CallInput) (data []byte, err error) {
	err = alone(ctx, args, getenv, stderr, func(d *Daemon) error {
		var err error
		data, err = d.kernel.DoUntil(ctx, "", schema.SyscallCall.With(call))
		return err
	})
	return data, err
}

// Inline has talk use a connection of the operator's to a kernel in this process (PROTOCOL 8). It is that of Once otherwise, and ends
// once talk has. Frames that show no dialect are answered in the given one, whose socket's limit holds for lines.
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
			_ = conn.Close() // nobody is at its other end any more
		})
		err = talk(ours)
		_ = ours.Close() // talk may have
		<-ended
		return err
	})
}

// alone runs use on a kernel in this process.
func alone(ctx context.Context, args []string, getenv func(string) string, stderr io.Writer, use func(*Daemon) error) (err error) {
	cfg, _, err := config.Settings(args, getenv, io.Discard, Version())
	if err != nil {
		return notMade(err)
	}
	if cfg.AuthorizedKeys != "" {
		return fault.AuthRequired.New("this kernel lets in holders of authorized keys alone, which takes a daemon: start it with pwosd")
	}
	cfg.Log.Level = max(cfg.Log.Level, slog.LevelWarn)
	cfg.RuntimeDir = filepath.Join(cfg.StateDir, "cli") // the usual one may be what is wrong
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

// Fetcher is what fetches for a daemon that were started with the given flags: its address rules and authorities are the configuration's.
func Fetcher(args []string, getenv func(string) string) (*fetch.Fetcher, error) {
	cfg, _, err := config.Settings(args, getenv, io.Discard, Version())
	if err != nil {
		return nil, err
	}
	return state.Fetcher(&cfg.HTTP, Version())
}

// Parameters returns the root and the origin, in its normal form, of a daemon that were started with the given flags.
func Parameters(args []string, getenv func(string) string) (root, origin string, err error) {
	cfg, _, err := config.Settings(args, getenv, io.Discard, Version())
	if err != nil {
		return "", "", err
	}
	origin, err = cfg.Principal()
	return cfg.Root, origin, err
}

// nobody has adopted nothing.
type nobody struct{}

func (nobody) Adopted(int64, string) *schema.Identity { return nil }

// PolicyForms are the forms in which a kernel with the configuration of that path judges names and addresses, without the kernel: nobody
// has adopted a resource that names could stand beside.
func PolicyForms(path string, getenv func(string) string) (policy.Forms, error) {
	cfg := config.Default(getenv, 0, "/")
	if err := cfg.Load(path, false, getenv); err != nil {
		return policy.Forms{}, err
	}
	space, err := cfg.Space()
	if err != nil {
		return policy.Forms{}, err
	}
	return policy.Forms{URL: fetch.Normal, Names: state.Names{Space: space, Adopted: nobody{}}}, nil
}
