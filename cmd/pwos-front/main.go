// Command pwos-front is what has to start fast. The first process of each program of an agent is one, so is the hook that an agent host
// starts before each use of a tool. pwos can do the same, but needs several times as long to start. Everything else is left to pwos, beside it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/door"
	"github.com/promptware-os/pwos/door/hookrun"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/front"
)

func main() {
	host.Shim() // must run first
	os.Exit(start(os.Args[1:]))
}

// start runs the verb of args, and returns the exit status.
func start(args []string) int {
	switch {
	case len(args) >= 2 && args[0] == "hook" && args[1] == "run":
		return runHook(args[2:])
	case slices.Equal(args, []string{"--version"}):
		fmt.Println(front.Version())
		return 0
	}
	err := leave(args)
	fmt.Fprintf(os.Stderr, "pwos: %v\n", err)
	return 1
}

// leave becomes pwos. It returns only if that fails.
func leave(args []string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own program: %w", err)
	}
	path := filepath.Join(filepath.Dir(self), "pwos")
	if err := syscall.Exec(path, append([]string{"pwos"}, args...), os.Environ()); err != nil {
		return fmt.Errorf("start %s: %w", path, err)
	}
	return nil
}

// runHook is "pwos hook run" without flags that precede the verb.
func runHook(args []string) int {
	run := hookrun.Run{Agent: door.Agent{Via: "hook"}, Out: os.Stdout, Say: say}
	flags := pflag.NewFlagSet("pwos-front hook run", pflag.ContinueOnError)
	flags.StringVar(&run.Agent.Name, "as", "", "name of the process to act as")
	flags.StringSliceVar(&run.Agent.Allow, "allow", nil, "what a new process may call, as in cap grant, separated by commas; may be repeated")
	flags.DurationVar(&run.Wait, "wait", 0, "how long a use may wait for the answer, also of a person, if the host waits longer (default 55s)")
	flags.BoolVar(&run.Tell, "tell", false, "the host only tells: a question that cannot be read denies nothing")
	err := flags.Parse(args)
	if err == nil && flags.NArg() != 1 {
		err = fmt.Errorf("one host is required, not %d", flags.NArg())
	}
	if errors.Is(err, pflag.ErrHelp) {
		return 0 // the flags were printed
	}
	if err != nil {
		say("%v", err)
		return hookrun.DenyStatus
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	run.Dial = func(ctx context.Context) (*client.Client, error) {
		return client.Dial(ctx, client.Options{Keys: client.Keys{Notice: func(text string) { say("%s", text) }}})
	}
	if err := run.Answer(ctx, flags.Arg(0), os.Stdin); err != nil {
		say("%v", err)
		_, _ = os.Stdout.Write(hookrun.Denial(flags.Arg(0), err)) // the status denies too
		return hookrun.DenyStatus
	}
	return 0
}

// say prints a message for the user as one line.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "pwos: "+format+"\n", args...) }
