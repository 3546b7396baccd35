package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/logging"
	"github.com/promptware-os/pwos/transport/systemd"
)

// Exit statuses (PROTOCOL 8).
const (
	exitFailed = 1
	exitUsage  = 2
)

// Main is the daemon as a program: `pwosd` and `pwos --mode=daemon`. It returns the exit status. A first SIGTERM or
// SIGINT ends it in good order, a second at once.
func Main(args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	Shim()
	// Taken before any other file is opened: they have fixed numbers.
	waiting, err := newWaiter(getenv)
	if err != nil {
		fmt.Fprintln(stderr, "pwosd:", err)
		return exitUsage
	}
	sockets, err := systemd.Sockets(systemd.OS{})
	if err != nil {
		return refuse(stderr, waiting, err, exitFailed)
	}
	cfg, done, err := config.Settings(args, getenv, stdout, Version())
	if done {
		return 0
	}
	if err != nil {
		return refuse(stderr, waiting, err, exitUsage)
	}
	syscall.Umask(0o077)

	// A log that nobody reads any more is to be an error of the write, not the end of the process. Ignoring the signal
	// instead would have every child inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	logged, log := logging.NewQueue(stderr, logForm(&cfg, getenv))
	defer logged.Close()
	d := New(cfg, sockets, log)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer onSignals(cancel, d.Hurry)()
	err = d.Open(ctx)
	waiting.tell(err)
	if err == nil {
		log.Info("ready", "version", Version(), "pid", os.Getpid(), "runtime_dir", cfg.RuntimeDir)
		manager(getenv, log, systemd.Ready, systemd.Status("serving "+cfg.RuntimeDir))
		defer onHangup(d.Reload)()
		d.stopping = func() { manager(getenv, log, systemd.Stopping) }
		err = d.Run(ctx)
	} else if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil // told to end while the journal was read: an orderly end as any other
	}
	if err = errors.Join(err, d.Close()); err != nil {
		log.Error("ended", "error", err)
		return exitFailed
	}
	log.Info("ended")
	return 0
}

func logForm(cfg *config.Config, getenv func(string) string) logging.Form {
	return logging.Form{Level: cfg.Log.Level, Format: cfg.Log.Format, Plain: getenv("NO_COLOR") != ""}
}

// refuse reports why the daemon does not start, to whoever waits for it as well.
func refuse(stderr io.Writer, waiting *waiter, err error, status int) int {
	waiting.tell(err)
	fmt.Fprintln(stderr, "pwosd:", err)
	return status
}

// manager tells the service manager; that it could not be told is no reason to stop.
func manager(getenv func(string) string, log *slog.Logger, states ...string) {
	if _, err := systemd.Notify(getenv, states...); err != nil {
		log.Warn("service manager not told", "error", err)
	}
}

// Version is the version of the program, as its build recorded it.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
