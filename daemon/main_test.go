package daemon_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// asProgram in the environment makes this test binary the daemon. The effects of signals and descriptors can only be tested
// with a process.
const asProgram = "PWOS_DAEMON_TEST"

func TestMain(m *testing.M) {
	daemon.Shim()
	if os.Getenv(asProgram) != "" {
		os.Exit(daemon.Main(os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
	}
	if os.Getenv(asInside) != "" {
		fmt.Fprintln(os.Stderr, enterNetwork()) // it returns only after a failure
		os.Exit(1)
	}
	os.Exit(testkit.Main(m))
}

// running is a daemon in the test's process.
type running struct {
	unixsock.Places
	stop  context.CancelFunc // like a signal
	ended chan error         // receives when Run and Close have returned
}

func settingsIn(dir string) config.Config {
	return config.Config{
		RuntimeDir: filepath.Join(dir, "r"),
		StateDir:   filepath.Join(dir, "s"),
		Log:        config.Log{Format: "auto"},
		Limits:     config.Limits{LineBytes: schema.MaxLine},
	}
}

// start runs a daemon until its test ends it, or ends.
func start(t *testing.T, change func(*config.Config)) *running {
	t.Helper()
	cfg := settingsIn(testkit.Dir(t))
	if change != nil {
		change(&cfg)
	}
	return run(t, cfg)
}

func run(t *testing.T, cfg config.Config) *running {
	t.Helper()
	return runThis(t, cfg, daemon.New(cfg, nil, discard()))
}

func runThis(t *testing.T, cfg config.Config, d *daemon.Daemon) *running {
	t.Helper()
	if err := d.Open(testkit.Context(t)); err != nil {
		testkit.Must(t, d.Close())
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Places: unixsock.PlacesIn(cfg.RuntimeDir), stop: cancel, ended: make(chan error, 1)}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		runErr := d.Run(ctx)
		if err := d.Close(); runErr == nil {
			runErr = err
		}
		r.ended <- runErr
	}()
	t.Cleanup(func() {
		cancel()
		testkit.Receive(t, gone, "the daemon's end")
	})
	return r
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
