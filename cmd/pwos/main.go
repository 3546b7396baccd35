// Command pwos is the client of a kernel; with --mode=daemon, or under the name pwosd, it is the daemon.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/daemon"
)

func main() {
	daemon.Shim() // must run first: the daemon starts the programs of agents through this binary
	os.Exit(start(os.Args[0], os.Args[1:]))
}

// start runs the mode that the program's name or args select, and returns the exit status (PROTOCOL 8).
func start(name string, args []string) int {
	mode, rest := cutMode(args)
	if filepath.Base(name) == "pwosd" { // a link to this program
		mode, rest = "daemon", args
	}
	if mode == "daemon" {
		return daemon.Main(rest, os.Getenv, os.Stdout, os.Stderr)
	}
	a := newApp(os.Stdin, os.Stdout, os.Stderr)
	ends := []os.Signal{syscall.SIGTERM}
	if signal.Ignored(os.Interrupt) {
		// A shell without job control ignores SIGINT and SIGQUIT for what it runs in the background. Go does not tell that of the second.
		signal.Ignore(syscall.SIGQUIT)
	} else {
		ends = append(ends, os.Interrupt)
		a.endByQuit()
		go func() {
			<-a.quit
			dieOf(syscall.SIGQUIT)
			os.Exit(128 + int(syscall.SIGQUIT))
		}()
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal has its default action
	// With a handler for SIGPIPE, a closed stdout is a write error and does not kill this process. Ignoring the signal would have the same
	// effect, but a daemon would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	line := hostLine(args)
	root := newRoot(a, line...)
	root.SetArgs(line)
	err := root.ExecuteContext(ctx)
	status := a.Report(err, ctx.Err() != nil)
	if ended, ok := errors.AsType[cli.Ended](err); ok && ended.Signal != 0 {
		dieOf(ended.Signal)
	}
	return status
}

// cutMode removes --mode from args if it precedes the first operand; flags after a verb belong to the verb, or to a
// program that it runs. It precedes all other parsing, since a daemon has its own flags.
func cutMode(args []string) (mode string, rest []string) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		value, joined := strings.CutPrefix(arg, "--mode=")
		switch {
		case arg == "--" || !strings.HasPrefix(arg, "-"):
			return "", args
		case joined:
			return value, slices.Concat(args[:i], args[i+1:])
		case arg == "--mode" && i+1 < len(args):
			return args[i+1], slices.Concat(args[:i], args[i+2:])
		case !strings.Contains(arg, "=") && !lone(arg):
			i++ // skip the flag's value
		}
	}
	return "", args
}

// lone reports whether a flag before the verb takes no value.
func lone(flag string) bool {
	switch flag {
	case "--json", "--no-spawn", "--help", "-h", "--version":
		return true
	}
	return false
}
