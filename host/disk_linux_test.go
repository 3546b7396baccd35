package host_test

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestNextLook: an agent's part of the disk is looked at every ten seconds, less often where that takes long, and at least every minute.
func TestNextLook(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ pause, took, want time.Duration }{
		{time.Second, 0, 2 * time.Second},
		{8 * time.Second, 0, 10 * time.Second},
		{10 * time.Second, 200 * time.Millisecond, 20 * time.Second},
		{20 * time.Second, 0, 10 * time.Second},
		{10 * time.Second, 10 * time.Second, time.Minute},
	} {
		if got := host.NextLook(c.pause, c.took); got != c.want {
			t.Errorf("after %s, and a look of %s: %s, want %s", c.pause, c.took, got, c.want)
		}
	}
}

// TestLookEnds: a look at an agent's part of the disk ends with the agent, so that the host's Close does not wait for it.
func TestLookEnds(t *testing.T) {
	t.Parallel()
	h := open(t)
	looks := make(chan struct{})
	p := testkit.Value(h.Start(t.Context(), host.Command{
		Argv: []string{"sleep", "1000"}, Dir: t.TempDir(), PID: 7, Sandbox: host.SandboxOff,
		Used: func(done <-chan struct{}) int64 {
			close(looks)
			<-done
			return 0
		},
	}))(t)
	<-looks
	h.Close(t.Context(), 0)
	testkit.Must(t, p.Conn().Close())
}

// TestNoVeils: a directory for veils that cannot be made is logged, and agents start.
func TestNoVeils(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	h, err := host.New(host.Options{Veils: filepath.Join(t.TempDir(), "absent", "veils"), Log: slog.New(slog.NewTextHandler(&log, nil))})
	testkit.Must(t, err)
	defer h.Close(context.Background(), 0)
	p := testkit.Value(h.Start(t.Context(), host.Command{Argv: []string{"true"}, Dir: t.TempDir(), PID: 7, Sandbox: host.SandboxDefault}))(t)
	<-p.Done()
	testkit.Must(t, p.Conn().Close())
	if !strings.Contains(log.String(), "each program makes what hides names") {
		t.Errorf("the log has %q", log.String())
	}
}
