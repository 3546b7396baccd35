package client

import (
	"errors"
	"fmt"
	"strings"

	"github.com/promptware-os/pwos/sshauth"
)

// Why there is no answer. Each is wrapped by the error that says more.
var (
	// ErrNotRunning: no kernel runs, and Options did not say how to start one.
	ErrNotRunning = errors.New("no kernel is running")
	// ErrNoAnswer: patience ran out before there was a connection.
	ErrNoAnswer = errors.New("no answer")
	// ErrHungUp: the kernel closed the connection before it had answered everything.
	ErrHungUp = errors.New("the kernel closed the connection")
	// ErrClosed: the Client was closed.
	ErrClosed = errors.New("the client is closed")
	// ErrBusy: a Client that calls cannot stream, and one that streams does nothing else.
	ErrBusy = errors.New("the connection is used for something else")
)

// UnreachableError says that there is no connection to the kernel whose socket it names, and why.
type UnreachableError struct {
	Socket string
	Err    error // ErrNotRunning, a *LaunchError, a refusal of the transport, or what happened when patience ran out
}

// Error names the socket and the reason.
func (e *UnreachableError) Error() string {
	if errors.Is(e.Err, ErrNotRunning) {
		return fmt.Sprintf("%v at %s", ErrNotRunning, e.Socket)
	}
	return fmt.Sprintf("reach kernel at %s: %v", e.Socket, e.Err)
}

// Unwrap returns the reason.
func (e *UnreachableError) Unwrap() error { return e.Err }

// LaunchError says why a daemon did not come up.
type LaunchError struct {
	Err  error    // the reason
	Log  string   // the daemon's log
	Tail []string // the last lines that it wrote there, oldest first
}

// Error gives the reason, then the lines, each on a line of its own. A single line that only says the reason again is left
// out, and the log is named.
func (e *LaunchError) Error() string {
	switch {
	case len(e.Tail) == 0:
		return fmt.Sprintf("start daemon: %v", e.Err)
	case len(e.Tail) == 1 && strings.Contains(strings.ReplaceAll(e.Tail[0], `\"`, `"`), e.Err.Error()):
		return fmt.Sprintf("start daemon: %v; its log is %s", e.Err, e.Log)
	}
	return fmt.Sprintf("start daemon: %v; the last lines of %s:\n  %s", e.Err, e.Log, strings.Join(e.Tail, "\n  "))
}

// Unwrap returns the reason.
func (e *LaunchError) Unwrap() error { return e.Err }

// LoginError says that there is a kernel but no way in: it refused every key that it was shown, or nothing was shown to it,
// because it is not the kernel that it was or because there is no key.
type LoginError struct {
	Socket  string
	Offered []Offer  // in the order in which the kernel refused them
	Skipped []string // why other keys were not shown, a sentence each
	Err     error    // the kernel's last refusal, or why nothing was shown
}

// Error names the keys that were offered, and what the kernel accepts.
func (e *LoginError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "log in to the kernel at %s: %v", e.Socket, e.Err)
	for i, o := range e.Offered {
		b.WriteString([]string{"; offered: ", ", "}[min(i, 1)] + o.String())
	}
	for i, why := range e.Skipped {
		b.WriteString([]string{"; not offered: ", "; "}[min(i, 1)] + why)
	}
	if errors.Is(e.Err, &sshauth.Error{Reason: sshauth.NoIdentity}) {
		b.WriteString("; it accepts the keys of its authorized_keys: " + sshauth.AcceptedTypes)
	}
	return b.String()
}

// Unwrap returns the reason.
func (e *LoginError) Unwrap() error { return e.Err }
