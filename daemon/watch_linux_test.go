package daemon_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/daemon"
)

// A daemon is told when its sockets are removed or moved, alone or with all that is around them, and has nothing to look at until then.
func TestRemovedSocketsAreReported(t *testing.T) {
	t.Parallel()
	cfg := settingsIn(tempDir(t))
	cfg.RuntimeDir = filepath.Join(cfg.RuntimeDir, "pwos")
	log := new(buffer)
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
		must(t, tt.remove(tt.path))
		back += tt.lost
		for strings.Count(log.String(), "is bound again") < back {
			select {
			case <-bounded(t).Done():
				t.Fatalf("%s: not bound again:\n%s", tt.name, log)
			case <-time.After(5 * time.Millisecond):
			}
		}
		for _, path := range []string{r.KernelSocket, r.EventsSocket} {
			p := dial(t, path)
			p.send(pings(1))
			p.wantPing(0)
		}
	}
	old.send(pings(1))
	old.wantPing(0)
}
