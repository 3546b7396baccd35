package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

// app holds what the verbs share: the standard streams and the global flags.
type app struct {
	stdin, stdout, stderr *os.File

	json       bool
	runtimeDir string
	timeout    time.Duration
	noSpawn    bool
	identity   string
	origin     string

	asked string // socket of the kernel dialled last; "": none has answered yet
}

func newApp(stdin, stdout, stderr *os.File) *app {
	return &app{stdin: stdin, stdout: stdout, stderr: stderr}
}

func (a *app) stdinTerminal() bool { return term.IsTerminal(int(a.stdin.Fd())) }

func (a *app) stdoutTerminal() bool { return term.IsTerminal(int(a.stdout.Fd())) }

// wantsJSON reports whether data is written as JSON instead of as tables.
func (a *app) wantsJSON() bool { return a.json || !a.stdoutTerminal() }

// say writes a line to stderr, for people.
func (a *app) say(format string, args ...any) {
	fmt.Fprintf(a.stderr, "pwos: "+format+"\n", args...)
}

// usualTimeout bounds a verb that waits for single answers: longer than a call waits for an approval by
// default.
const usualTimeout = time.Minute

// errTimeout is the cause of a context that --timeout ended.
var errTimeout = fault.CallTimeout.New("timed out")

// bound limits ctx to --timeout, or to otherwise if --timeout was not given; 0 is no limit.
func (a *app) bound(ctx context.Context, otherwise time.Duration) (context.Context, context.CancelFunc) {
	limit := a.timeout
	if limit == 0 {
		limit = otherwise
	}
	if limit == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, limit, fault.CallTimeout.New("timed out after %v", limit))
}

// dialing configures the connection of a verb, in addition to the flags.
type dialing struct {
	args    []string // flags for a kernel that this call starts
	running bool     // do not start one
	kernel  string   // ask this kernel, through the one that is dialled
	events  bool     // use the socket of the older dialect, whose lines are longer
}

// dial connects to the kernel. It starts one if none runs, unless --no-spawn was given.
func (a *app) dial(ctx context.Context) (*client.Client, error) { return a.dialWith(ctx, dialing{}) }

// dialRunning is dial for verbs that never start a kernel.
func (a *app) dialRunning(ctx context.Context) (*client.Client, error) {
	return a.dialWith(ctx, dialing{running: true})
}

// dialWith is dial with options. It remembers which kernel answered, for the error of a call that times out later.
func (a *app) dialWith(ctx context.Context, d dialing) (*client.Client, error) {
	options, err := a.options()
	if err != nil {
		return nil, err
	}
	options.Events, options.Kernel = d.events, d.kernel
	if !a.noSpawn && !d.running {
		self, err := daemonCommand()
		if err != nil {
			return nil, err
		}
		self.Args = append(self.Args, d.args...)
		options.Spawn = &self
	}
	c, err := client.Dial(ctx, options)
	if err == nil {
		a.asked = c.Places().KernelSocket
	}
	return c, err
}

// options returns the client options that the flags ask for. --timeout also bounds the start of a
// kernel.
func (a *app) options() (client.Options, error) {
	options := client.Options{RuntimeDir: a.runtimeDir, Patience: a.timeout, Keys: a.keys()}
	if a.origin != "" {
		var err error
		if options.Origin, err = daemon.Origin(a.origin); err != nil {
			return options, misuse("pwos", fmt.Errorf("--origin: %w", err))
		}
	}
	if a.runtimeDir != "" {
		dir, err := filepath.Abs(a.runtimeDir)
		if err != nil {
			return options, fmt.Errorf("find runtime directory: %w", err)
		}
		options.RuntimeDir = dir
	}
	return options, nil
}

// keys returns the keys that the flags name. It asks for a passphrase if there is a terminal.
func (a *app) keys() client.Keys {
	keys := client.Keys{Identity: a.identity, Notice: func(text string) { a.say("%s", text) }}
	if canAsk() {
		keys.Passphrase = askPassphrase
	}
	return keys
}

// daemonCommand returns the command that runs this program as a daemon.
func daemonCommand() (client.Command, error) {
	self, err := os.Executable()
	if err != nil {
		return client.Command{}, fmt.Errorf("find own program: %w", err)
	}
	return client.Command{Path: self, Args: []string{"--mode=daemon"}}, nil
}

// untilHangup returns a context that ends with ctx or when the terminal hangs up, unless SIGHUP is ignored. The
// returned function stops listening for the signal.
func untilHangup(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if signal.Ignored(syscall.SIGHUP) { // nohup
		return ctx, func() { cancel(nil) }
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	var waiter sync.WaitGroup
	waiter.Go(func() {
		select {
		case <-hangup:
			cancel(exitStatus(128 + syscall.SIGHUP))
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		cancel(nil)
		waiter.Wait()
		signal.Stop(hangup)
	}
}

// stateDir returns the state directory of a kernel of this environment (PROTOCOL 1).
func stateDir() (string, error) {
	if dir := os.Getenv("PWOS_STATE_DIR"); dir != "" {
		return dir, nil
	}
	if base := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "pwos"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find state directory: %w: set PWOS_STATE_DIR", err)
	}
	return filepath.Join(home, ".local", "state", "pwos"), nil
}

// journalDir returns the directory of the journal that a kernel of this environment keeps.
func journalDir() (string, error) {
	dir, err := stateDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "journal"), nil
}

// agentLogFile returns the file with a process's standard error; the one before it has ".1" appended.
func agentLogFile(pid int64) (string, error) {
	dir, err := stateDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "agents", strconv.FormatInt(pid, 10), "stderr.log"), nil
}

// style applies a look to text, unless stdout is no terminal or colours are not wanted (https://no-color.org).
func (a *app) style(l view.Look, text string) string {
	if !a.stdoutTerminal() || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return text
	}
	return "\x1b[" + string(l) + "m" + text + "\x1b[0m"
}

// width is the terminal's width in characters; 0 if stdout is no terminal, or its width is unknown.
func (a *app) width() int {
	width, _, err := term.GetSize(int(a.stdout.Fd()))
	if err != nil {
		return 0
	}
	return max(width, 0)
}
