package daemon_test

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/internal/testkit"
)

// Both sockets come back when they were removed, and the log says so; what somebody else has put there stays, and the log
// says that once.
func TestRemovedSocketsComeBack(t *testing.T) {
	t.Parallel()
	cfg := settingsIn(testkit.Dir(t))
	log := new(testkit.Buffer)
	d := daemon.New(cfg, nil, slog.New(slog.NewTextHandler(log, nil)))
	looks := make(chan time.Time)
	d.LookAt(looks)
	r := runThis(t, cfg, d)
	// A second socket is not received before the first one has been handled.
	look := func() {
		for range 2 {
			select {
			case looks <- time.Time{}:
			case <-testkit.Context(t).Done():
				t.Fatal("the daemon does not look at its sockets")
			}
		}
	}
	old := dial(t, r.KernelSocket)
	for _, path := range []string{r.KernelSocket, r.EventsSocket} {
		testkit.Must(t, os.Remove(path))
		look()
		p := dial(t, path)
		p.send(pings(1))
		p.wantPing(0)
	}
	old.send(pings(1))
	old.wantPing(0)
	if n := strings.Count(log.String(), "is bound again"); n != 2 {
		t.Errorf("the log says %d times that a socket is back, want 2:\n%s", n, log)
	}

	testkit.Must(t, os.Remove(r.EventsSocket))
	testkit.Must(t, os.WriteFile(r.EventsSocket, []byte("mine"), 0o600))
	look()
	look()
	if n := strings.Count(log.String(), "cannot be bound again"); n != 1 {
		t.Errorf("the log says %d times that a socket is lost, want once:\n%s", n, log)
	}
	if text, err := os.ReadFile(r.EventsSocket); err != nil || string(text) != "mine" {
		t.Errorf("the file at its place has %q, %v", text, err)
	}
	testkit.Must(t, os.Remove(r.EventsSocket))
	look()
	dial(t, r.EventsSocket).send(pings(1))
}
