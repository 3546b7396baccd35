// Command pwos is the single entry point to a kernel: client by default, daemon with --mode=daemon.
package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/internal/bench"
)

func main() {
	daemon.Shim() // before anything else: an agent's program is started here
	os.Exit(start(os.Args[1:]))
}

// start chooses the mode of this process, runs it, and returns its exit status (PROTOCOL 8).
func start(args []string) int {
	mode, rest := cutMode(args)
	switch mode {
	case "daemon":
		return daemon.Main(rest, os.Getenv, os.Stdout, os.Stderr)
	case "echo":
		return bench.EchoMain(rest, os.Stdin, os.Stdout, os.Stderr)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	// A closed stdout must be a write error, not the end of the process. A daemon would inherit it if the signal were
	// ignored.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	a := newApp(os.Stdin, os.Stdout, os.Stderr)
	root := newRoot(a)
	root.SetArgs(args)
	return a.report(root.ExecuteContext(ctx), ctx.Err() != nil)
}

// cutMode removes --mode from args if it precedes the first operand: flags after a verb belong to the verb, or to a
// program that it runs. It runs before all other parsing, since a daemon has its own flags.
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
			i++ // its value
		}
	}
	return "", args
}

// lone reports whether a flag before a verb, or a flag of the daemon, takes no value.
func lone(flag string) bool {
	switch flag {
	case "--json", "--no-spawn", "--help", "-h", "--version":
		return true
	}
	return false
}
