// Package kernel_test tests a whole kernel over its sockets: authority, quotas, memory, messages, the journal, the wire.
package kernel_test

import (
	"bufio"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
	"github.com/promptware-os/pwos/schema"
)

func TestMain(m *testing.M) { testkernel.Main(m) }

// running is a daemon in this process, whose clock only advances by hand.
type running struct {
	cfg  config.Config
	log  slog.Handler
	stop func()
}

func start(t testing.TB, edit ...func(*config.Config)) *running {
	t.Helper()
	cfg := testkernel.Settings(testkit.NewPlace(t, ""))
	cfg.Clock.Interval = 0
	cfg.Resources = map[string]float64{"gpu": 8, "ram": 1000}
	for _, e := range edit {
		e(&cfg)
	}
	d := &running{cfg: cfg, log: slog.DiscardHandler}
	d.begin(t)
	return d
}

// begin starts a daemon with the present state.
func (d *running) begin(t testing.TB) {
	t.Helper()
	d.stop = testkernel.Run(t, daemon.New(d.cfg, nil, slog.New(d.log)))
}

// restart ends the daemon cleanly, and starts another one with its state.
func (d *running) restart(t *testing.T) {
	t.Helper()
	d.restartAfter(t, func() {})
}

// restartAfter is restart, and calls change in between.
func (d *running) restartAfter(t *testing.T, change func()) {
	t.Helper()
	d.stop()
	change()
	d.begin(t)
}

// client is a connection after the prologue.
type client struct {
	t       testing.TB
	conn    net.Conn
	lines   *bufio.Reader
	last    int
	spawned int // number of spawns
	shapes  map[string]*shape
}

func (d *running) dial(t testing.TB) *client { return d.dialOn(t, "kernel.sock") }

func (d *running) dialOn(t testing.TB, socket string) *client {
	t.Helper()
	c := d.reach(t, socket)
	c.write(testkit.Authenticated)
	return c
}

// reach connects and reads the prologue, without an answer to it.
func (d *running) reach(t testing.TB, socket string) *client {
	t.Helper()
	conn, err := net.Dial("unix", filepath.Join(d.cfg.RuntimeDir, socket))
	testkit.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	testkit.Must(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
	c := &client{t: t, conn: conn, lines: bufio.NewReaderSize(conn, 2*schema.MaxLine), shapes: make(map[string]*shape)}
	if a := c.next(); a.Type != "Syscall.Authenticate" && a.Name != "Syscall.Authenticate" {
		t.Fatalf("the first frame is %+v", a)
	}
	return c
}
