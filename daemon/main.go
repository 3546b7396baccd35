package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/logging"
	"github.com/promptware-os/pwos/internal/version"
	"github.com/promptware-os/pwos/transport/systemd"
)

// Exit statuses (PROTOCOL 8).
const (
	exitFailed = 1
	exitUsage  = 2
)

// Main is the daemon as a program: `pwosd` and `pwos --mode=daemon`. It returns the exit status. A first SIGTERM or
// SIGINT ends it cleanly, a second at once.
func Main(args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	Shim()
	// This must come before any other file is opened: passed sockets have fixed numbers.
	waiting, err := newWaiter(getenv)
	if err != nil {
		fmt.Fprintln(stderr, "pwosd:", err)
		return exitUsage
	}
	sockets, err := systemd.Sockets(os.Getenv, os.Unsetenv)
	if err != nil {
		return refuse(stderr, waiting, err, exitFailed)
	}
	cfg, done, err := config.Settings(args, getenv, stdout, version.Build())
	if done {
		return 0
	}
	if err != nil {
		return refuse(stderr, waiting, err, exitUsage)
	}
	syscall.Umask(0o077)

	// Writing to a closed log must be a write error, not the end of the process. Children would inherit the signal
	// being ignored.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	logged, log := logging.NewQueue(stderr, cfg.LogForm(getenv))
	defer logged.Close()
	d := New(cfg, sockets, log)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer onSignals(cancel, d.Hurry)()
	d.standing = func() { manager(getenv, log, systemd.Ready, systemd.Status("standby of the kernel "+cfg.Cluster.Name)) }
	err = d.Open(ctx)
	waiting.tell(err)
	if err == nil {
		log.Info("ready", "version", version.Build(), "pid", os.Getpid(), "runtime_dir", cfg.RuntimeDir)
		manager(getenv, log, systemd.Ready, systemd.Status("serving "+cfg.RuntimeDir))
		defer onHangup(d.Reload)()
		d.stopping = func() { manager(getenv, log, systemd.Stopping) }
		err = d.Run(ctx)
	} else if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil // asked to end while the journal was read: an orderly end
	}
	if err = errors.Join(err, d.Close()); err != nil {
		log.Error("ended", "error", err)
		return exitFailed
	}
	log.Info("ended")
	return 0
}

// refuse reports why the daemon does not start, also to the process that waits for it.
func refuse(stderr io.Writer, waiting *waiter, err error, status int) int {
	waiting.tell(err)
	fmt.Fprintln(stderr, "pwosd:", err)
	return status
}

// manager notifies the service manager; a failure is no reason to stop.
func manager(getenv func(string) string, log *slog.Logger, states ...string) {
	if _, err := systemd.Notify(getenv, states...); err != nil {
		log.Warn("service manager not told", "error", err)
	}
}

// ReadyVariable names the descriptor on which the process that started the daemon waits for one line: "READY <pid>",
// "RUNNING" if another daemon serves already, or "FAILED <reason>".
const ReadyVariable = "PWOS_READY_FD"

// waiter is the process that waits for the daemon to be ready; nil: none does.
type waiter struct{ pipe *os.File }

// newWaiter takes the descriptor, so that no child inherits it.
func newWaiter(getenv func(string) string) (*waiter, error) {
	text := getenv(ReadyVariable)
	if text == "" {
		return nil, nil
	}
	fd, err := strconv.Atoi(text)
	if err != nil || fd < 3 || !pipe(fd) {
		return nil, fmt.Errorf("%s=%s is not an inherited pipe", ReadyVariable, text)
	}
	syscall.CloseOnExec(fd)
	return &waiter{pipe: os.NewFile(uintptr(fd), "readiness pipe")}, os.Unsetenv(ReadyVariable)
}

// tell writes the line for the outcome of Open. It ignores errors: the waiting process may have ended.
func (w *waiter) tell(opened error) {
	if w == nil {
		return
	}
	line := "READY " + strconv.Itoa(os.Getpid())
	switch {
	case errors.Is(opened, ErrRunning):
		line = "RUNNING"
	case opened != nil:
		line = "FAILED " + strings.ReplaceAll(opened.Error(), "\n", "; ")
	}
	_, _ = w.pipe.WriteString(line + "\n")
	_ = w.pipe.Close()
}

// pipe reports whether fd is open and a pipe: a wrong number could be any of our files.
func pipe(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO
}

// onSignals calls first at the first SIGTERM or SIGINT and again at the second; a third has the system's default
// effect. The returned function stops that and waits until neither runs.
func onSignals(first, again func()) (stop func()) {
	acts := []func(){first, again}
	return onEach(func() (more bool) {
		acts[0]()
		acts = acts[1:]
		return len(acts) > 0
	}, os.Interrupt, syscall.SIGTERM)
}

// onHangup calls reload at each SIGHUP. The returned function ends that, and waits until it does not run.
func onHangup(reload func()) (stop func()) {
	return onEach(func() bool {
		reload()
		return true
	}, syscall.SIGHUP)
}

// onEach calls act at each of the signals, until it returns false.
func onEach(act func() (more bool), which ...os.Signal) (stop func()) {
	signals := make(chan os.Signal, 2) // room for both of onSignals, so that none is lost
	signal.Notify(signals, which...)
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		defer signal.Stop(signals)
		for more := true; more; {
			select {
			case <-signals:
				more = act()
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		watch.Wait()
	}
}
