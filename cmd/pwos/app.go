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

// app holds what all verbs share: the standard streams and the global flags.
type app struct {
	stdin, stdout, stderr *os.File

	json       bool
	runtimeDir string
	timeout    time.Duration
	noSpawn    bool
	identity   string
	origin     string

	asked string // socket of the kernel that was dialled last; "": none was reached
}

func newApp(stdin, stdout, stderr *os.File) *app {
	return &app{stdin: stdin, stdout: stdout, stderr: stderr}
}

func (a *app) stdinTerminal() bool { return term.IsTerminal(int(a.stdin.Fd())) }

func (a *app) stdoutTerminal() bool { return term.IsTerminal(int(a.stdout.Fd())) }

// wantsJSON reports whether output is JSON: with --json, or if stdout is not a terminal.
func (a *app) wantsJSON() bool { return a.json || !a.stdoutTerminal() }

// say prints a message for the user to stderr, as one line that begins with "pwos: ".
func (a *app) say(format string, args ...any) {
	fmt.Fprintf(a.stderr, "pwos: "+format+"\n", args...)
}

// usualTimeout is the default time limit of a verb that makes single calls. It is longer than the default time that a call waits
// for approval.
const usualTimeout = time.Minute

// errTimeout is the cause of a context whose time limit has passed.
var errTimeout = fault.CallTimeout.New("timed out")

// bound limits ctx to --timeout, or to otherwise if --timeout was not given; 0 means no limit.
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

// dialing are the options of a connection that are not global flags.
type dialing struct {
	args    []string // flags for a kernel that the dial starts
	running bool     // do not start a kernel
	kernel  string   // connect to this kernel of the cluster, through the connected one
	events  bool     // use events.sock, whose line limit is higher
}

// dial connects to the kernel. It starts a kernel if none runs, unless --no-spawn was given.
func (a *app) dial(ctx context.Context) (*client.Client, error) { return a.dialWith(ctx, dialing{}) }

// dialRunning is dial, but never starts a kernel.
func (a *app) dialRunning(ctx context.Context) (*client.Client, error) {
	return a.dialWith(ctx, dialing{running: true})
}

// dialWith is dial with options. It records the kernel's socket in a.asked, for the error of a later call that times out.
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

// options returns the client options that the global flags select. --timeout also bounds the start of a kernel.
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

// keys returns the keys that the flags select. It asks for passphrases if there is a terminal.
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

// untilHangup returns a context that also ends when the terminal hangs up, unless SIGHUP is ignored. The
// returned function cancels the context and stops the signal handler.
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

// stateDir returns the state directory of this environment's kernel (PROTOCOL 1).
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

// journalDir returns the journal directory of this environment's kernel.
func journalDir() (string, error) {
	dir, err := stateDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "journal"), nil
}

// agentLogFile returns the path of the log with a process's standard error. The rotated file has the suffix ".1".
func agentLogFile(pid int64) (string, error) {
	dir, err := stateDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "agents", strconv.FormatInt(pid, 10), "stderr.log"), nil
}

// style applies a look to text, unless stdout is not a terminal or colours are off (https://no-color.org).
func (a *app) style(l view.Look, text string) string {
	if !a.stdoutTerminal() || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return text
	}
	return "\x1b[" + string(l) + "m" + text + "\x1b[0m"
}

// width returns the terminal's width in columns; 0 if stdout is not a terminal, or its width is unknown.
func (a *app) width() int {
	width, _, err := term.GetSize(int(a.stdout.Fd()))
	if err != nil {
		return 0
	}
	return max(width, 0)
}
