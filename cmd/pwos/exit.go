package main

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

// Exit statuses that no fault has (PROTOCOL 8). Those of faults are in schema/fault.
const (
	exitOK          = 0
	exitInterrupted = 130
)

// errSeen reports that a stream contained error frames. They are on stdout, so report prints nothing more.
var errSeen = errors.New("error frames were seen")

// usage returns the error of an invalid command line of cmd.
func usage(cmd *cobra.Command, err error) error { return misuse(cmd.CommandPath(), err) }

// misuse returns the error of an invalid command line of the named verb.
func misuse(verb string, err error) error {
	return fault.UsageInvalid.New("%s", err.Error()).With("verb", verb).Wrap(err)
}

// arguments wraps an argument check of cobra. Its error is a fault.UsageInvalid that shows the verb's usage line.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch err := check(cmd, args); {
		case err == nil:
			return nil
		case len(cmd.ValidArgs) > 0 && len(args) == 1: // not one of the valid words
			return usage(cmd, err)
		case len(args) == 1:
			return usage(cmd, fmt.Errorf("%q does not take 1 argument", cmd.UseLine()))
		default:
			return usage(cmd, fmt.Errorf("%q does not take %d arguments", cmd.UseLine(), len(args)))
		}
	}
}

// report prints to stderr why a verb failed and what to do about it, and returns the exit status.
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

// status returns the exit status of a verb that ended with err.
func status(err error, interrupted bool) int {
	var handedOn exitStatus
	switch {
	case err == nil:
		return exitOK
	case interrupted:
		return exitInterrupted
	case errors.Is(err, fault.CallTimeout):
		return fault.ExitUnknown
	case errors.Is(err, fault.UsageInvalid):
		return fault.ExitUsage
	case errors.As(err, &handedOn):
		return int(handedOn)
	}
	failure, ok := errors.AsType[*fault.Fault](err)
	switch {
	case ok:
		return failure.Exit()
	case errors.Is(err, fault.StateDamaged):
		return fault.ExitIntegrity
	case errors.Is(err, syscall.EPIPE): // the reader of stdout has closed it
		return exitOK
	}
	return fault.ExitError
}

// unanswered returns a text that names the kernel that did not answer in time; "" if err names it or is another error.
func (a *app) unanswered(err error) string {
	if a.asked == "" || !errors.Is(err, fault.CallTimeout) || strings.Contains(err.Error(), a.asked) {
		return ""
	}
	return ": no answer from the kernel at " + a.asked
}

// codeOf returns the code of a kernel's error as a text; "" for other errors.
func codeOf(err error) string {
	if code := kernelCode(err); code != 0 {
		return fmt.Sprintf(" (%d)", code)
	}
	return ""
}

// kernelCode returns the code of a kernel's error; 0 for other errors.
func kernelCode(err error) int {
	if failure := client.Answered(err); failure != nil {
		return failure.Code()
	}
	return 0
}

// advice returns what the user can do about err; "" if there is nothing to add.
func advice(err error) string {
	var refused *excepted
	switch {
	case errors.As(err, &refused) && refused.seq > 0:
		return view.Exception(refused.seq) + " shows the narrowest change that allows it"
	case errors.Is(err, fault.UsageInvalid):
		return fmt.Sprintf("%q shows its usage", fault.Of(err).Detail("verb")+" --help")
	case errors.Is(err, fault.DaemonNotRunning):
		return `start it with "pwosd", or let a call start it, such as "pwos call Syscall.Ping payload=1"`
	case errors.Is(err, fault.DaemonNoAnswer):
		return `if it only needs more time, give it that with --timeout, or start it with "pwosd"`
	case errors.Is(err, fault.DaemonLaunch):
		return `correct that and try again; "pwosd" shows the kernel's start in the foreground`
	case errors.Is(err, fault.DaemonHungUp):
		return `see kernel.log in the runtime directory for why it ended; the next call starts a new one`
	case errors.Is(err, fault.AuthLogin):
		return `"pwos auth status" shows which keys there are to show, and whether the kernel is the one that it was`
	case errors.Is(err, fault.CallTimeout):
		return `--timeout gives it more time; "pwos status" tells whether the kernel answers`
	}
	return ""
}
