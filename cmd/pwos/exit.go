package main

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
)

// Exit statuses (PROTOCOL 8).
const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitDenied      = 3
	exitNotFound    = 4
	exitQuota       = 5
	exitUnreachable = 6
	exitTimeout     = 7
	exitInterrupted = 130
)

// errSeen says that error frames went by in a stream: they are on stdout, there is nothing to add.
var errSeen = errors.New("error frames were seen")

// usageError is a command line that makes no sense.
type usageError struct {
	verb string // the command whose help says more
	err  error
}

func (e *usageError) Error() string { return e.err.Error() }

func (e *usageError) Unwrap() error { return e.err }

func usage(cmd *cobra.Command, err error) error { return &usageError{cmd.CommandPath(), err} }

// arguments is a check of cobra's whose refusal is a usageError, and says what the arguments are instead of how many.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch err := check(cmd, args); {
		case err == nil:
			return nil
		case len(cmd.ValidArgs) > 0 && len(args) == 1: // it is the wrong word
			return usage(cmd, err)
		case len(args) == 1:
			return usage(cmd, fmt.Errorf("%q does not go with 1 argument", cmd.UseLine()))
		default:
			return usage(cmd, fmt.Errorf("%q does not go with %d arguments", cmd.UseLine(), len(args)))
		}
	}
}

// report says on stderr why a verb ended as it did, and what to do next, and returns the exit status.
func (a *app) report(err error, interrupted bool) int {
	code := status(err, interrupted)
	if code == exitOK || code == exitInterrupted || errors.Is(err, errSeen) || errors.As(err, new(exitStatus)) {
		return code
	}
	a.say("%v%s%s", err, codeOf(err), a.unanswered(err))
	if next := advice(err); next != "" {
		a.say("%s", next)
	}
	return code
}

func status(err error, interrupted bool) int {
	var kernel *client.KernelError
	var own *verdict
	var handedOn exitStatus
	var here *schema.Error // said here in the kernel's words
	switch {
	case err == nil:
		return exitOK
	case interrupted:
		return exitInterrupted
	case errors.Is(err, errTimeout):
		return exitTimeout
	case errors.As(err, new(*usageError)):
		return exitUsage
	case errors.As(err, &own):
		return own.status
	case errors.As(err, &handedOn):
		return int(handedOn)
	case errors.As(err, &kernel):
		return kernelStatus(kernel.Code)
	case errors.As(err, new(*client.LoginError)):
		return exitDenied
	case errors.As(err, new(*client.UnreachableError)), errors.As(err, new(*client.LaunchError)), errors.Is(err, client.ErrHungUp):
		return exitUnreachable
	case errors.Is(err, syscall.EPIPE): // the reader of stdout has seen enough
		return exitOK
	case errors.As(err, &here):
		return kernelStatus(here.Code())
	}
	return exitError
}

func kernelStatus(code int) int {
	switch code {
	case 401, 403:
		return exitDenied
	case 404:
		return exitNotFound
	case 429:
		return exitQuota
	}
	return exitError
}

// unanswered names the kernel that did not answer in time, where err does not.
func (a *app) unanswered(err error) string {
	if a.asked == "" || !errors.Is(err, errTimeout) || strings.Contains(err.Error(), a.asked) {
		return ""
	}
	return ": no answer from the kernel at " + a.asked
}

// codeOf is the code of a kernel's error, for who looks it up.
func codeOf(err error) string {
	var kernel *client.KernelError
	if !errors.As(err, &kernel) {
		return ""
	}
	return fmt.Sprintf(" (%d)", kernel.Code)
}

// advice says what to do about err; "" where err says so itself.
func advice(err error) string {
	var misuse *usageError
	switch {
	case errors.As(err, &misuse):
		return fmt.Sprintf("%q says how it is used", misuse.verb+" --help")
	case errors.Is(err, client.ErrNotRunning):
		return `start it with "pwosd", or let a call start it, such as "pwos call Syscall.Ping payload=1"`
	case errors.Is(err, client.ErrNoAnswer):
		return `if it only needs more time, give it that with --timeout, or start it with "pwosd"`
	case errors.As(err, new(*client.LaunchError)):
		return `mend that and try again; "pwosd" shows the kernel's start in the foreground`
	case errors.Is(err, client.ErrHungUp):
		return `see kernel.log in the runtime directory for why it ended; the next call starts a new one`
	case errors.As(err, new(*client.LoginError)):
		return `"pwos auth status" shows which keys there are to show, and whether the kernel is the one that it was`
	case errors.Is(err, errTimeout):
		return `--timeout gives it more time; "pwos status" tells whether the kernel answers`
	}
	return ""
}
