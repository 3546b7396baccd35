package daemon_test

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
)

// A daemon is notified when its sockets are removed or moved, alone or with their directories, and does not check them
// until then.
func TestRemovedSocketsAreReported(t *testing.T) {
	t.Parallel()
	cfg := settingsIn(testkit.Dir(t))
	cfg.RuntimeDir = filepath.Join(cfg.RuntimeDir, "pwos")
	log := new(testkit.Buffer)
	d := daemon.New(cfg, nil, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	d.NeverLook()
	r := runThis(t, cfg, d)
	old := dial(t, r.KernelSocket)
	back := 0
	move := func(path string) error { return os.Rename(path, path+".old") }
	for _, tt := range []struct {
		name   string
		remove func(path string) error
		path   string
		lost   int // sockets
	}{
		{"one is removed", os.Remove, r.KernelSocket, 1},
		{"one is moved", move, r.EventsSocket, 1},
		{"the directory is moved", move, cfg.RuntimeDir, 2},
		{"the directory above is moved", move, filepath.Dir(cfg.RuntimeDir), 2},
	} {
		testkit.Must(t, tt.remove(tt.path))
		back += tt.lost
		testkit.Eventually(t, tt.name+", and they are bound again", func() bool { return strings.Count(log.String(), "is bound again") >= back })
		for _, path := range []string{r.KernelSocket, r.EventsSocket} {
			p := dial(t, path)
			p.send(pings(1))
			p.wantPing(0)
		}
	}
	old.send(pings(1))
	old.wantPing(0)
}

// An idle daemon sleeps until any program creates a blob, and still removes it when it is old, also in a directory that was
// created again. The test does not run in parallel, since it checks goroutines.
func TestSweepAwaitsTheFirstBlob(t *testing.T) {
	for name, remake := range map[string]bool{"the first directory": false, "made again": true} {
		t.Run(name, func(t *testing.T) {
			r := start(t, func(c *config.Config) {
				c.Blobs = config.Blobs{FileBytes: 1 << 20, DirBytes: 1 << 20, DirFiles: 9, TTL: config.Duration(50 * time.Millisecond)}
			})
			asleep := func() bool {
				text := make([]byte, 1<<20)
				return bytes.Contains(text[:runtime.Stack(text, true)], []byte("blob.(*Directory).awaitFirst("))
			}
			testkit.Eventually(t, "the sweep is idle", asleep)
			if remake {
				testkit.Must(t, os.Remove(r.Blobs))
				testkit.Eventually(t, "the directory is back", func() bool { _, err := os.Lstat(r.Blobs); return err == nil })
				testkit.Eventually(t, "the sweep is idle again", asleep)
			}
			dropped := filepath.Join(r.Blobs, "dropped")
			testkit.Must(t, os.WriteFile(dropped, nil, 0o600))
			testkit.Eventually(t, "the old blob is removed", func() bool { _, err := os.Lstat(dropped); return errors.Is(err, fs.ErrNotExist) })
			testkit.Eventually(t, "the sweep is idle again", asleep)
		})
	}
}
