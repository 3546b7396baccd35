package soak_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
)

// settings keep the clock still, so that it moves by calls only.
const settings = `
[clock]
interval = "0s"
[resources]
gpu = 1000
`

// place is what one kernel after another lives in.
type place struct {
	dir         string
	connections atomic.Int64 // past the prologue, of the kernel that runs
}

func newPlace(t *testing.T) *place {
	t.Helper()
	dir := testkit.Dir(t)
	p := &place{dir: dir}
	testkit.Must(t, os.WriteFile(p.path("config.toml"), []byte(settings), 0o600))
	return p
}

func (p *place) path(name string) string { return filepath.Join(p.dir, name) }

// inside is a kernel in this process, where its heap and its goroutines can be counted.
type inside struct {
	cancel context.CancelFunc
	kernel *daemon.Daemon
	ended  chan error
}

// start starts a kernel in this process on the state there is.
func (p *place) start(t *testing.T) *inside {
	t.Helper()
	cfg := config.Default(func(string) string { return "" }, os.Getuid(), p.dir)
	cfg.RuntimeDir, cfg.StateDir = p.path("r"), p.path("s")
	cfg.Clock.Interval = 0
	cfg.Resources = map[string]float64{"gpu": 1000}
	k := daemon.New(cfg, nil, slog.New(slog.DiscardHandler))
	if err := k.Open(t.Context()); err != nil {
		_ = k.Close()
		t.Fatal(err)
	}
	p.connections.Store(0)
	ctx, cancel := context.WithCancel(context.Background())
	d := &inside{cancel: cancel, kernel: k, ended: make(chan error, 1)}
	go func() { d.ended <- k.Run(ctx) }()
	return d
}

// stop ends it in good order. It does nothing the second time.
func (d *inside) stop(t *testing.T) {
	t.Helper()
	if d.kernel == nil {
		return
	}
	k := d.kernel
	d.kernel = nil
	d.cancel()
	select {
	case err := <-d.ended:
		if err != nil {
			t.Errorf("run: %v", err)
		}
	case <-time.After(testkit.Patience / 4): // the grace for connections is shorter
		t.Fatal("the kernel does not end")
	}
	if err := k.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// verify checks the journal, and returns how many entries and bytes it has.
func (p *place) verify(t *testing.T) string {
	t.Helper()
	report, err := journal.Verify(t.Context(), nil, p.path("s/journal"), journal.VerifyOptions{})
	testkit.Must(t, err)
	for _, f := range report.Findings {
		t.Error(f)
	}
	files, err := filepath.Glob(p.path("s/journal/*.ndjson"))
	testkit.Must(t, err)
	var bytes int64
	for _, name := range files {
		info, err := os.Stat(name)
		testkit.Must(t, err)
		bytes += info.Size()
	}
	return fmt.Sprintf("%d entries, %d MB, %d segments", report.Entries, bytes>>20, len(files))
}
