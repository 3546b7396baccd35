package cli_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema/fault"
)

func kernelError(code int) error {
	return fmt.Errorf("wrapped: %w", client.AsAnswered(&fault.Fault{Kind: fault.KindOf(code), Message: "no"}))
}

func unreachable(err error) error {
	return fault.DaemonUnreachable.New("unreachable: %v", err).Wrap(err)
}

// timedOut returns the cause of a context whose --timeout has passed.
func timedOut() error {
	a := cli.App{Timeout: 1}
	ctx, cancel := a.Bound(context.Background(), 0)
	defer cancel()
	<-ctx.Done()
	return context.Cause(ctx)
}

// TestStatus checks the exit statuses of PROTOCOL 8.
func TestStatus(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		err         error
		interrupted bool
		want        int
	}{
		{"all well", nil, false, 0},
		{"all well in spite of a late signal", nil, true, 0},
		{"stdout closed", fmt.Errorf("write output: %w", syscall.EPIPE), false, 0},
		{"error frames in a stream", cli.ErrSeen, false, 1},
		{"the kernel's 400", kernelError(400), false, 1},
		{"the kernel's 409", kernelError(409), false, 8},
		{"the kernel's 422", kernelError(422), false, 1},
		{"the kernel's 500", kernelError(500), false, 1},
		{"the kernel's 504", kernelError(504), false, 7},
		{"the kernel's 410", kernelError(410), false, 8},
		{"the kernel's cluster.away", client.AsAnswered(fault.ClusterAway.New("no majority")), false, 6},
		{"the kernel's unknown outcome", client.AsAnswered(fault.ClusterUnknown.New("may be lost")), false, 7},
		{"undelivered", fault.ExportUndelivered.New("no receiver"), false, 7},
		{"a kernel that did not answer, among others", errors.Join(nil, fault.ClusterKernelAway.New("away")), false, 6},
		{"anything else", io.ErrUnexpectedEOF, false, 1},
		{"wrong usage", cli.Misuse("pwos call", io.EOF), false, 2},
		{"not authenticated", kernelError(401), false, 3},
		{"denied", kernelError(403), false, 3},
		{"no key was accepted", fault.AuthLogin.New("no way in").Wrap(kernelError(401)), false, 3},
		{"no key to show, or another kernel", fault.AuthLogin.New("no way in").Wrap(io.EOF), false, 3},
		{"not found", kernelError(404), false, 4},
		{"quota", kernelError(429), false, 5},
		{"a newer kernel's id", client.AsAnswered(&fault.Fault{ID: "moon.full", Kind: fault.QuotaExceeded}), false, 5},
		{"a newer kernel's code", client.AsAnswered(&fault.Fault{ID: "moon.full", Status: 451}), false, 1},
		{"a damaged journal", &journal.DamageError{}, false, 10},
		{"no key to seal with", fault.SealNoKey.New("no key"), false, 3},
		{"a broken seal", fault.SealBroken.New("broken"), false, 10},
		{"a program that did not start", fault.ProcessNotStarted.New("not found"), false, 127},
		{"not running", unreachable(fault.DaemonNotRunning), false, 6},
		{"not to be started", unreachable(fault.DaemonLaunch.New("no start").Wrap(io.EOF)), false, 6},
		{"demo's kernel not to be started", fault.DaemonLaunch.New("no start").Wrap(io.EOF), false, 6},
		{"hung up", fault.DaemonHungUp.New("hung up").Wrap(syscall.EPIPE), false, 6},
		{"timed out", timedOut(), false, 7},
		{"timed out while starting", fault.DaemonLaunch.New("no start").Wrap(timedOut()), false, 7},
		{"interrupted", io.EOF, true, 130},
	} {
		if got := cli.Status(tt.err, tt.interrupted); got != tt.want {
			t.Errorf("%s: status %d, want %d", tt.name, got, tt.want)
		}
	}
}

// TestAdvice checks that errors which the user can fix have advice.
func TestAdvice(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"pwos call --help":     cli.Misuse("pwos call", io.EOF),
		"pwosd":                unreachable(fault.DaemonNotRunning),
		"--timeout":            timedOut(),
		"pwos auth status":     fault.AuthLogin.New("no way in").Wrap(io.EOF),
		"kernel.log":           fmt.Errorf("x: %w", fault.DaemonHungUp.New("hung up")),
		"foreground":           unreachable(fault.DaemonLaunch.New("no start").Wrap(io.EOF)),
		"only needs more time": unreachable(fault.DaemonLaunch.New("no start").Wrap(fault.DaemonNoAnswer.New("no answer within 5s"))),
		"":                     kernelError(404), // the kernel's error has its own advice
	} {
		if got := cli.Advice(err); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("advice for %v is %q, want one with %q", err, got, want)
		}
	}
}
