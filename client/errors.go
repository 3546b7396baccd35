package client

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Errors of a Client that is misused.
var (
	// ErrClosed means that the Client was closed.
	ErrClosed = errors.New("the client is closed")
	// ErrBusy means that the Client has another use: a Client that makes calls cannot stream, and one that streams cannot
	// make calls.
	ErrBusy = errors.New("the connection is used for something else")
)

// errNotRunning means that no kernel runs, and that Options.Spawn is nil.
var errNotRunning = fault.DaemonNotRunning.New("no kernel is running")

// noAnswer returns the error of a Dial whose patience ended.
func noAnswer(patience time.Duration) *fault.Fault {
	return fault.DaemonNoAnswer.New("no answer within %v", patience)
}

// unreachable returns the error that the kernel there cannot be reached, because of err.
func unreachable(there route, err error) *fault.Fault {
	f := fault.DaemonUnreachable.New("reach kernel at %s: %v", there, err)
	if errors.Is(err, errNotRunning) {
		f.Message = fmt.Sprintf("%v at %s", errNotRunning, there)
	}
	return f.With("socket", there.String()).Wrap(err)
}

// launchFailed returns the error of a daemon that did not start, with the last lines of its log, oldest first. A
// single line that only repeats the reason is left out, and the log is named.
func launchFailed(err error, log string, tail []string) *fault.Fault {
	text := fmt.Sprintf("start daemon: %v", err)
	switch {
	case len(tail) == 1 && strings.Contains(strings.ReplaceAll(tail[0], `\"`, `"`), err.Error()):
		text += "; its log is " + log
	case len(tail) > 0:
		text += fmt.Sprintf("; the last lines of %s:\n  %s", log, strings.Join(tail, "\n  "))
	}
	return fault.DaemonLaunch.New("%s", text).With("log", log).Wrap(err)
}

// loginFailed returns the error of a failed login: the kernel refused every key, or none was offered because the kernel
// is not the known one or there is no key. skipped has the reasons why other keys were not offered.
func loginFailed(there route, offered []Offer, skipped []string, err error) *fault.Fault {
	var b strings.Builder
	fmt.Fprintf(&b, "log in to the kernel at %s: %v", there, err)
	for i, o := range offered {
		b.WriteString([]string{"; offered: ", ", "}[min(i, 1)] + o.String())
	}
	for i, why := range skipped {
		b.WriteString([]string{"; not offered: ", "; "}[min(i, 1)] + why)
	}
	if errors.Is(err, fault.AuthNoIdentity) {
		b.WriteString("; it accepts the keys of its authorized_keys: " + access.AcceptedTypes)
	}
	return fault.AuthLogin.New("%s", b.String()).Wrap(err)
}

// errAnswered is in the chain of each fault that is a kernel's answer.
var errAnswered = errors.New("answered by the kernel")

// Answered returns the fault in err's chain with which the kernel answered a message (MESSAGE 4.2.6); nil if there is
// none.
func Answered(err error) *fault.Fault {
	f, ok := errors.AsType[*fault.Fault](err)
	for ok && f.Err != errAnswered {
		f, ok = errors.AsType[*fault.Fault](errors.Join(f.Unwrap()...))
	}
	return f
}

// AsAnswered marks a fault as the answer of a kernel in this process.
func AsAnswered(f *fault.Fault) *fault.Fault { return f.Wrap(errAnswered) }

// answerOf decodes the error m. If its data is not of the form of MESSAGE 4.2.6, the message of the fault quotes it.
func answerOf(m *schema.Message) *fault.Fault {
	f, err := schema.DecodeErrorData(m.Data)
	if err != nil || f.Message == "" {
		f = fault.KernelInternal.New("error of an unknown form: %s", m.Data)
	}
	f.SetID(fault.ID(m.Meta.Error))
	return AsAnswered(f)
}
