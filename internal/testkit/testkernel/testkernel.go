// Package testkernel runs a kernel in the process of a test.
package testkernel

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
)

// asDaemon is the environment variable that makes a test binary the daemon.
const asDaemon = "PWOS_TESTKIT_DAEMON"

// Main runs the tests of a package whose binary is also the shim of agents' programs, and the daemon that Self starts. It
// does not return.
func Main(m *testing.M) {
	daemon.Shim()
	if os.Getenv(asDaemon) != "" {
		os.Exit(daemon.Main(os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
	}
	os.Exit(testkit.Main(m))
}

// Self returns the test's own binary as a daemon, with the race detector if the test has it.
func Self(t testing.TB, args ...string) testkit.Daemon {
	t.Helper()
	return testkit.Daemon{
		Command: append([]string{testkit.Value(os.Executable())(t)}, args...),
		Env:     []string{asDaemon + "=1", "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"},
	}
}

// Settings returns the default settings of a kernel at a place.
func Settings(p *testkit.Place) config.Config {
	cfg := config.Default(func(string) string { return "" }, os.Getuid(), p.Dir)
	cfg.RuntimeDir, cfg.StateDir = p.RuntimeDir(), p.StateDir()
	return cfg
}

// Start runs a kernel until stop is called, or the test ends. An error at its start ends the test; one at its end fails it.
func Start(t testing.TB, cfg config.Config) (stop func()) {
	t.Helper()
	return Run(t, daemon.New(cfg, nil, slog.New(slog.DiscardHandler)))
}

// Run is Start for a daemon that the test has configured.
func Run(t testing.TB, d *daemon.Daemon) (stop func()) {
	t.Helper()
	if err := d.Open(testkit.Context(t)); err != nil {
		t.Fatal(errors.Join(err, d.Close()))
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(d.Run(ctx), d.Close()) }()
	stop = sync.OnceFunc(func() {
		t.Helper()
		cancel()
		if err := testkit.Receive(t, ended, "the kernel's end"); err != nil {
			t.Errorf("the kernel ended with %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// Dial connects to a kernel until the test ends.
func Dial(t testing.TB, runtimeDir string) *client.Client {
	t.Helper()
	return DialWith(t, client.Options{RuntimeDir: runtimeDir})
}

// DialWith is Dial with options.
func DialWith(t testing.TB, o client.Options) *client.Client {
	t.Helper()
	o.Patience = testkit.Patience
	c := testkit.Value(client.Dial(testkit.Context(t), o))(t)
	t.Cleanup(func() { testkit.Must(t, c.Close()) })
	return c
}
