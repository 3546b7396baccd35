// Command pwos is the single entry point to a kernel: client by default, daemon with --mode=daemon.
package main

import (
	"context"
	"os"
	"os/signal"
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
	err := newRoot(a).run(ctx, args)
	return a.report(err, ctx.Err() != nil)
}
