package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

// Excepted is the refusal, by a policy rule, of a call that the operator made for an agent.
type Excepted struct {
	Refusal error
	Seq     int64 // number of the call's entry; 0: unknown
}

func (e *Excepted) Error() string { return e.Refusal.Error() }

func (e *Excepted) Unwrap() error { return e.Refusal }

// Exit statuses that no fault has (PROTOCOL 8). Those of faults are in schema/fault.
const (
	exitOK          = 0
	exitInterrupted = 130
)

// ErrSeen reports that a stream contained error frames. They are on stdout, so report prints nothing more.
var ErrSeen = errors.New("error frames were seen")

// Usage returns the error of an invalid command line of cmd.
func Usage(cmd *cobra.Command, err error) error { return Misuse(cmd.CommandPath(), err) }

// Misuse returns the error of an invalid command line of the named verb.
func Misuse(verb string, err error) error {
	return fault.UsageInvalid.New("%s", err.Error()).With("verb", verb).Wrap(err)
}

// Arguments wraps an argument check of cobra. Its error is a fault.UsageInvalid that shows the verb's usage line.
func Arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch err := check(cmd, args); {
		case err == nil:
			return nil
		case len(cmd.ValidArgs) > 0 && len(args) == 1: // not one of the valid words
			return Usage(cmd, fmt.Errorf("%q is not one of %s%s", args[0], strings.Join(cmd.ValidArgs, ", "), didYouMean(args[0], cmd.ValidArgs)))
		case len(args) == 1:
			return Usage(cmd, fmt.Errorf("%q does not take 1 argument", cmd.UseLine()))
		default:
			return Usage(cmd, fmt.Errorf("%q does not take %d arguments", cmd.UseLine(), len(args)))
		}
	}
}

// didYouMean returns a text that suggests the most similar of the words; "" if none is similar.
func didYouMean(word string, words []string) string {
	if like := schema.Nearest(word, slices.Values(words)); like != "" {
		return fmt.Sprintf("; did you mean %q?", like)
	}
	return ""
}

// Report prints to stderr why a verb failed and what to do about it, and returns the exit status.
func (a *App) Report(err error, interrupted bool) int {
	code := Status(err, interrupted)
	if code == exitOK || code == exitInterrupted || errors.Is(err, ErrSeen) || errors.As(err, new(ExitStatus)) || errors.As(err, new(Ended)) {
		return code
	}
	a.Say("%v%s%s", err, codeOf(err), a.unanswered(err))
	if next := Advice(err); next != "" {
		a.Say("%s", next)
	}
	return code
}

// Status returns the exit status of a verb that ended with err.
func Status(err error, interrupted bool) int {
	var handedOn ExitStatus
	var ended Ended
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &ended):
		return ended.Status
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
func (a *App) unanswered(err error) string {
	if a.asked == "" || !errors.Is(err, fault.CallTimeout) || strings.Contains(err.Error(), a.asked) {
		return ""
	}
	return ": no answer from the kernel at " + a.asked
}

// codeOf returns the code of a kernel's error as a text; "" for other errors.
func codeOf(err error) string {
	if code := KernelCode(err); code != 0 {
		return fmt.Sprintf(" (%d)", code)
	}
	return ""
}

// KernelCode returns the code of a kernel's error; 0 for other errors.
func KernelCode(err error) int {
	if failure := client.Answered(err); failure != nil {
		return failure.Code()
	}
	return 0
}

// Advice returns what the user can do about err; "" if there is nothing to add.
func Advice(err error) string {
	var refused *Excepted
	switch {
	case errors.As(err, &refused) && refused.Seq > 0:
		return view.Exception(refused.Seq) + " shows the narrowest change that allows it"
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

// ExitStatus is an error that only sets the exit status. report prints nothing for it.
type ExitStatus int

func (s ExitStatus) Error() string { return "exit status " + strconv.Itoa(int(s)) }

// Ended is an error that only says how the program of a verb ended: this process ends in the same way. It counts more than an interrupt
// of the verb, which the program has got too.
type Ended struct {
	Status int
	Signal syscall.Signal // 0: none ended it
}

func (e Ended) Error() string { return ExitStatus(e.Status).Error() }

// Given returns the first of the flags that is on the command line; "" if there is none.
func Given(cmd *cobra.Command, names ...string) string {
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			return name
		}
	}
	return ""
}
