package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/transport/systemd"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// Exit statuses (PROTOCOL 8).
const (
	exitFailed = 1
	exitUsage  = 2
)

// Main is the daemon as a program: `pwosd` and `pwos --mode=daemon`. It returns the exit status. A first SIGTERM or
// SIGINT ends it in good order, a second at once.
func Main(args []string, getenv func(string) string, stdout, stderr io.Writer) int {
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
	cfg, done, err := settings(args, getenv, stdout)
	if done {
		return 0
	}
	if err != nil {
		return refuse(stderr, waiting, err, exitUsage)
	}
	syscall.Umask(0o077)

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal finds the system's own handling

	log := newLog(stderr, cfg.Log, getenv)
	d := New(cfg, sockets, log)
	err = d.Open(ctx)
	waiting.tell(err)
	if err == nil {
		log.Info("ready", "version", Version(), "pid", os.Getpid(), "runtime_dir", cfg.RuntimeDir)
		manager(getenv, log, systemd.Ready, systemd.Status("serving "+cfg.RuntimeDir))
		context.AfterFunc(ctx, func() { manager(getenv, log, systemd.Stopping) })
		err = d.Run(ctx)
	}
	if err = errors.Join(err, d.Close()); err != nil {
		log.Error("ended", "error", err)
		return exitFailed
	}
	log.Info("ended")
	return 0
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

// settings puts together flags, environment and file, in this order of precedence (PROTOCOL 1). done says that the flags
// asked for a text and nothing else.
func settings(args []string, getenv func(string) string, stdout io.Writer) (cfg config.Config, done bool, err error) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/"
	}
	cfg = config.Default(getenv, os.Getuid(), home)
	var file string
	var idle, format, level string
	var version bool
	flags := pflag.NewFlagSet("pwosd", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&file, "config", "", "configuration file (default "+unixsock.ConfigFile(getenv, home)+")")
	runtimeDir := flags.String("runtime-dir", "", "directory of the sockets (default "+cfg.RuntimeDir+")")
	stateDir := flags.String("state-dir", "", "directory of what outlives a restart (default "+cfg.StateDir+")")
	flags.StringVar(&idle, "idle-timeout", "", "end after nobody was connected for that long, such as 10m (default: stay)")
	flags.StringVar(&level, "log-level", "", "debug, info, warn or error (default info)")
	flags.StringVar(&format, "log-format", "", "auto, console or json (default auto: console at a terminal)")
	flags.BoolVar(&version, "version", false, "print the version and exit")
	switch err := flags.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Fprint(stdout, usage, flags.FlagUsages())
		return cfg, true, nil
	case err != nil:
		return cfg, false, fmt.Errorf("%w (pwosd --help lists the flags)", err)
	case flags.NArg() > 0:
		return cfg, false, fmt.Errorf("unexpected argument %q (pwosd --help lists the flags)", flags.Arg(0))
	case version:
		fmt.Fprintln(stdout, "pwosd", Version())
		return cfg, true, nil
	}
	if err := load(&cfg, file, getenv, home); err != nil {
		return cfg, false, err
	}
	err = override(&cfg, map[string]string{"idle_timeout": idle, "log.level": level, "log.format": format})
	for dst, flag := range map[*string]string{&cfg.RuntimeDir: *runtimeDir, &cfg.StateDir: *stateDir} {
		if flag != "" {
			abs, absErr := filepath.Abs(flag)
			err = errors.Join(err, absErr)
			*dst = abs
		}
	}
	return cfg, false, errors.Join(err, cfg.Check())
}

// load reads the configuration file: the one that a flag or the environment names has to be there.
func load(cfg *config.Config, file string, getenv func(string) string, home string) error {
	named := file != "" || getenv("PWOS_CONFIG") != ""
	if file == "" {
		file = unixsock.ConfigFile(getenv, home)
	}
	return cfg.Load(file, named, getenv)
}

// override applies flags that have a setting's form.
func override(cfg *config.Config, flags map[string]string) error {
	var text string
	for key, value := range flags {
		if value != "" {
			text += fmt.Sprintf("%s = %q\n", key, value)
		}
	}
	if err := cfg.Parse([]byte(text)); err != nil {
		return fmt.Errorf("flags: %w", err)
	}
	return nil
}

const usage = `pwosd is the kernel: it serves agents and the pwos command line on a Unix socket.

Usage:
  pwosd [flags]

A client starts it by itself when there is none. It ends in good order on SIGTERM, on
SIGINT, and on "pwos shutdown".

Flags:
`

// Version is the version of the program, as its build recorded it.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
