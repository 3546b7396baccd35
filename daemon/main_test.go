package daemon_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// asProgram in the environment makes this test binary the daemon itself: what signals and descriptors do to a process can
// only be seen on one.
const asProgram = "PWOS_DAEMON_TEST"

func TestMain(m *testing.M) {
	daemon.Shim()
	if os.Getenv(asProgram) != "" {
		os.Exit(daemon.Main(os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
	}
	if os.Getenv(asInside) != "" {
		fmt.Fprintln(os.Stderr, enterNetwork()) // it returns only where it has failed
		os.Exit(1)
	}
	os.Exit(testkit.Main(m))
}

// patience bounds what happens within milliseconds unless it never does.
const patience = 60 * time.Second

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// bounded is a context that ends a test which would else hang.
func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// await receives from a channel on which something comes unless the test fails.
func await[T any](t testing.TB, from <-chan T, what string) (got T) {
	t.Helper()
	select {
	case got = <-from:
	case <-time.After(patience):
		t.Fatalf("waited %v for %s", patience, what)
	}
	return got
}

// eventually waits for a condition that nothing announces.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(patience); !holds(); {
		if time.Now().After(limit) {
			t.Fatalf("waited %v for %s", patience, what)
		}
		<-time.After(time.Millisecond)
	}
}

// tempDir is a directory whose path is short, unlike t.TempDir's, for the sockets' sake.
func tempDir(t testing.TB) string {
	t.Helper()
	return testkit.Dir(t)
}

// running is a daemon inside the test.
type running struct {
	unixsock.Places
	stop  context.CancelFunc // as a signal does
	ended chan error         // Run and Close have returned
}

func settingsIn(dir string) config.Config {
	return config.Config{
		RuntimeDir: filepath.Join(dir, "r"),
		StateDir:   filepath.Join(dir, "s"),
		Log:        config.Log{Format: "auto"},
		Limits:     config.Limits{LineBytes: schema.MaxLine},
	}
}

// start runs a daemon until the test ends, or the test ends it.
func start(t *testing.T, change func(*config.Config)) *running {
	t.Helper()
	cfg := settingsIn(tempDir(t))
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
	if err := d.Open(bounded(t)); err != nil {
		must(t, d.Close())
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
		await(t, gone, "the daemon's end")
	})
	return r
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
