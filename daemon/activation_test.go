package daemon_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/transport/systemd"
)

// A passed socket is served and stays when the daemon ends; a socket that was not passed is bound, and removed.
func TestActivatedSocket(t *testing.T) {
	t.Parallel()
	dir := testkit.Dir(t)
	cfg := settingsIn(dir)
	handed := filepath.Join(dir, "handed.sock")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: handed, Net: "unix"})
	testkit.Must(t, err)
	d := daemon.New(cfg, []systemd.Socket{{Name: systemd.KernelName, Listener: ln}}, discard())
	testkit.Must(t, d.Open(testkit.Context(t)))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ran := make(chan error, 1)
	go func() { ran <- d.Run(ctx) }()

	events := filepath.Join(cfg.RuntimeDir, "events.sock")
	testkit.Must(t, os.Chmod(handed, 0o600))
	for _, path := range []string{handed, events} {
		p := dial(t, path)
		p.send(pings(1))
		p.wantPing(0)
	}
	if _, err := os.Lstat(filepath.Join(cfg.RuntimeDir, "kernel.sock")); !os.IsNotExist(err) {
		t.Errorf("the daemon bound kernel.sock although that socket was passed to it: %v", err)
	}
	cancel()
	testkit.Must(t, testkit.Receive(t, ran, "the daemon's end"))
	testkit.Must(t, d.Close())
	if _, err := os.Lstat(handed); err != nil {
		t.Errorf("the daemon removed the socket that was passed to it: %v", err)
	}
	if _, err := os.Lstat(events); !os.IsNotExist(err) {
		t.Errorf("the daemon did not remove the socket that it had bound: %v", err)
	}
}

// Keys are also required at a passed socket, which is named by its path, as clients name it.
func TestActivatedSocketAsksForAKey(t *testing.T) {
	t.Parallel()
	dir := testkit.Dir(t)
	key := newKey(t)
	h := &house{config: settingsIn(dir), known: access.KnownKernels{Path: filepath.Join(dir, "known_kernels")}}
	h.config.AuthorizedKeys = filepath.Join(dir, "authorized_keys")
	h.authorize(t, key.Key().String())
	handed := filepath.Join(dir, "handed.sock")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: handed, Net: "unix"})
	testkit.Must(t, err)
	d := daemon.New(h.config, []systemd.Socket{{Name: systemd.KernelName, Listener: ln}}, discard())
	testkit.Must(t, d.Open(testkit.Context(t)))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ran := make(chan error, 1)
	go func() { ran <- d.Run(ctx) }()
	h.login(t, key, handed).want("query", "Syscall.Ping", `{"payload":1}`, "1")
	h.login(t, newKey(t), handed).wantRefused("not in the daemon's authorized_keys")
	cancel()
	testkit.Must(t, testkit.Receive(t, ran, "the daemon's end"))
	testkit.Must(t, d.Close())
}
