package host_test

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// bound is how long a test waits for a condition.
const bound = 30 * time.Second

// open opens a host, which is closed after the test.
func open(t testing.TB) *host.Host {
	t.Helper()
	h, err := host.New(host.Options{})
	testkit.Must(t, err)
	t.Cleanup(func() { h.Close(context.Background(), 0) })
	return h
}

// openShared opens a host without PID namespaces.
func openShared(t testing.TB) *host.Host {
	t.Helper()
	means, err := host.Probe()
	testkit.Must(t, err)
	means.PIDs = false
	h, err := host.New(host.Options{Means: &means})
	testkit.Must(t, err)
	t.Cleanup(func() { h.Close(context.Background(), 0) })
	return h
}

// shell returns a command that runs a script.
func shell(t testing.TB, script string, args ...string) host.Command {
	t.Helper()
	self, err := os.Executable() // scripts run it
	testkit.Must(t, err)
	return host.Command{
		Argv: append([]string{"/bin/sh", "-c", script, "sh"}, args...), Dir: t.TempDir(), PID: 7, AgentID: "worker", Read: []string{self},
	}
}

// helper returns a command that runs one of this binary's helper programs.
func helper(t testing.TB, args ...string) host.Command {
	t.Helper()
	self, err := os.Executable()
	testkit.Must(t, err)
	return host.Command{Argv: append([]string{self}, args...), Dir: t.TempDir(), PID: 7, AgentID: "worker", ShowProgram: true}
}

// start starts a command, which must succeed.
func start(t testing.TB, h *host.Host, c host.Command) *host.Process {
	t.Helper()
	p, err := h.Start(t.Context(), c)
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, p.Conn().Close()) })
	return p
}

// wait returns the end of a program.
func wait(t testing.TB, p *host.Process) host.Exit {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	exit, err := p.Wait(ctx)
	testkit.Must(t, err)
	return exit
}

func itoa(n int) string { return strconv.Itoa(n) }

func u64(n uint64) string { return strconv.FormatUint(n, 10) }
