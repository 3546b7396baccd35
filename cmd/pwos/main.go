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
	daemon.Shim() // before anything else: a program of an agent begins here
	os.Exit(start(os.Args[1:]))
}

// start finds out what this process is to be, and returns its exit status (PROTOCOL 8).
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
	// A closed stdout is to be an error of the write, not the end of the process. Ignoring the signal instead would have every
	// daemon inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	a := newApp(os.Stdin, os.Stdout, os.Stderr)
	root := newRoot(a)
	root.SetArgs(args)
	return a.report(root.ExecuteContext(ctx), ctx.Err() != nil)
}

// cutMode takes --mode out of args, where it stands before the first operand: what follows a verb is the verb's, or a program's
// that it runs. It is looked for before anything else is parsed, since what remains is the daemon's to understand.
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

// lone reports whether a flag that stands before a verb, or one of the daemon's, takes no value.
func lone(flag string) bool {
	switch flag {
	case "--json", "--no-spawn", "--help", "-h", "--version":
		return true
	}
	return false
}
