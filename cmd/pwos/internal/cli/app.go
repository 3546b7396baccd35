// Package cli is what the verbs of pwos share: the connection, the output, the terminal, the exit statuses.
package cli

import (
	"context"
	"errors"
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

// App holds what all verbs share: the standard streams and the global flags.
type App struct {
	Stdin, Stdout, Stderr *os.File

	JSON       bool
	RuntimeDir string
	Timeout    time.Duration
	NoSpawn    bool
	Identity   string
	Origin     string
	Kernel     KernelAddress

	named []named // agents of the command line that are looked up once a kernel is connected
	asked string  // address of the kernel that was dialled last; "": none was reached
}

func New(stdin, stdout, stderr *os.File) *App {
	return &App{Stdin: stdin, Stdout: stdout, Stderr: stderr}
}

func (a *App) StdinTerminal() bool { return term.IsTerminal(int(a.Stdin.Fd())) }

func (a *App) StdoutTerminal() bool { return term.IsTerminal(int(a.Stdout.Fd())) }

func (a *App) StderrTerminal() bool { return term.IsTerminal(int(a.Stderr.Fd())) }

// WantsJSON reports whether output is JSON: with --json, or if stdout is not a terminal.
func (a *App) WantsJSON() bool { return a.JSON || !a.StdoutTerminal() }

// Say prints a message for the user to stderr, as one line that begins with "pwos: ".
func (a *App) Say(format string, args ...any) {
	fmt.Fprintf(a.Stderr, "pwos: "+format+"\n", args...)
}

// UsualTimeout is the default time limit of a verb that makes single calls. It is longer than the default time that a call waits
// for approval.
const UsualTimeout = time.Minute

// ErrTimeout is the cause of a context whose time limit has passed.
var ErrTimeout = fault.CallTimeout.New("timed out")

// Bound limits ctx to --timeout, or to otherwise if --timeout was not given; 0 means no limit.
func (a *App) Bound(ctx context.Context, otherwise time.Duration) (context.Context, context.CancelFunc) {
	limit := a.Timeout
	if limit == 0 {
		limit = otherwise
	}
	if limit == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, limit, fault.CallTimeout.New("timed out after %v", limit))
}

// Dialing are the options of a connection that are not global flags.
type Dialing struct {
	Args    []string // flags for a kernel that the dial starts
	Running bool     // do not start a kernel
	kernel  string   // connect to this kernel of the cluster, through the connected one
	Events  bool     // use events.sock, whose line limit is higher
}

// Dial connects to the kernel. It starts a kernel if none runs, unless --no-spawn was given.
func (a *App) Dial(ctx context.Context) (*client.Client, error) { return a.DialWith(ctx, Dialing{}) }

// DialRunning is dial, but never starts a kernel.
func (a *App) DialRunning(ctx context.Context) (*client.Client, error) {
	return a.DialWith(ctx, Dialing{Running: true})
}

// DialWith is dial with options. It records the kernel's address in a.asked, for the error of a later call that times out.
func (a *App) DialWith(ctx context.Context, d Dialing) (*client.Client, error) {
	options, err := a.Options()
	if err != nil {
		return nil, err
	}
	options.Events, options.Kernel = d.Events, d.kernel
	if !a.NoSpawn && !d.Running {
		self, err := DaemonCommand()
		if err != nil {
			return nil, err
		}
		self.Args = append(self.Args, d.Args...)
		options.Spawn = &self
	}
	c, err := client.Dial(ctx, options)
	if err == nil {
		a.asked = c.Address()
	}
	return c, err
}

// Options returns the client options that the global flags select. --timeout also bounds the start of a kernel.
func (a *App) Options() (client.Options, error) {
	options := client.Options{At: string(a.Kernel), RuntimeDir: a.RuntimeDir, Patience: a.Timeout, Keys: a.Keys()}
	if a.Origin != "" {
		var err error
		if options.Origin, err = daemon.Origin(a.Origin); err != nil {
			return options, Misuse("pwos", fmt.Errorf("--origin: %w", err))
		}
	}
	if a.RuntimeDir != "" && a.Kernel != "" {
		return options, Misuse("pwos", errors.New("--kernel and --runtime-dir name two kernels"))
	}
	if a.RuntimeDir != "" {
		dir, err := filepath.Abs(a.RuntimeDir)
		if err != nil {
			return options, fmt.Errorf("find runtime directory: %w", err)
		}
		options.RuntimeDir = dir
	}
	return options, nil
}

// Keys returns the keys that the flags select. It asks for passphrases if there is a terminal.
func (a *App) Keys() client.Keys {
	keys := client.Keys{Identity: a.Identity, Notice: func(text string) { a.Say("%s", text) }}
	if canAsk() {
		keys.Passphrase = keyPassphrase
	}
	return keys
}

// DaemonCommand returns the command that runs this program as a daemon.
func DaemonCommand() (client.Command, error) {
	self, err := os.Executable()
	if err != nil {
		return client.Command{}, fmt.Errorf("find own program: %w", err)
	}
	return client.Command{Path: self, Args: []string{"--mode=daemon"}}, nil
}

// UntilHangup returns a context that also ends when the terminal hangs up, unless SIGHUP is ignored. The
// returned function cancels the context and stops the signal handler.
func UntilHangup(ctx context.Context) (context.Context, context.CancelFunc) {
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
			cancel(ExitStatus(128 + syscall.SIGHUP))
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		cancel(nil)
		waiter.Wait()
		signal.Stop(hangup)
	}
}

// StateDir returns the state directory of this environment's kernel (PROTOCOL 1).
func StateDir() (string, error) {
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

// JournalDir returns the journal directory of this environment's kernel.
func JournalDir() (string, error) {
	dir, err := StateDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "journal"), nil
}

// AgentLogFile returns the path of the log with a process's standard error. The rotated file has the suffix ".1".
func AgentLogFile(pid int64) (string, error) {
	dir, err := StateDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "agents", strconv.FormatInt(pid, 10), "stderr.log"), nil
}

// Style applies a look to text, unless stdout is not a terminal or colours are off (https://no-color.org).
func (a *App) Style(l view.Look, text string) string {
	if !a.StdoutTerminal() || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return text
	}
	return "\x1b[" + string(l) + "m" + text + "\x1b[0m"
}

// Width returns the terminal's width in columns; 0 if stdout is not a terminal, or its width is unknown.
func (a *App) Width() int {
	width, _, err := term.GetSize(int(a.Stdout.Fd()))
	if err != nil {
		return 0
	}
	return max(width, 0)
}
