package daemon_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// A second daemon is refused, and the first continues, also if the lock's file is deleted.
func TestOneDaemonADirectory(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		before func(t *testing.T, r *running)
		why    error
	}{
		"locked":       {func(*testing.T, *running) {}, fault.PlaceLocked},
		"lock deleted": {func(t *testing.T, r *running) { testkit.Must(t, os.Remove(r.Lock)) }, fault.PlaceLocked},
		"lock and legacy socket deleted": {func(t *testing.T, r *running) {
			testkit.Must(t, errors.Join(os.Remove(r.Lock), os.Remove(r.EventsSocket)))
		}, fault.PlaceLocked},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := testkit.Dir(t)
			r := run(t, settingsIn(dir))
			tt.before(t, r)
			second := daemon.New(settingsIn(dir), nil, discard())
			err := second.Open(testkit.Context(t))
			if !errors.Is(err, daemon.ErrRunning) || !errors.Is(err, tt.why) || !strings.Contains(fmt.Sprint(err), strconv.Itoa(os.Getpid())) {
				t.Errorf("error %v, want one that names this process", err)
			}
			testkit.Must(t, second.Close())
			p := dial(t, r.KernelSocket)
			p.send(pings(1))
			p.wantPing(0)
		})
	}
}

// The program reports that to its starter, and in its message.
func TestSecondProgram(t *testing.T) {
	t.Parallel()
	dir := testkit.Dir(t)
	first := spawn(t, dir, nil).serving(t)
	second := spawn(t, dir, nil)
	if text := second.told(t); text != "RUNNING\n" {
		t.Errorf("the daemon reported %q", text)
	}
	second.wantExit(t, 1)
	if says := second.stderr.String(); !strings.Contains(says, strconv.Itoa(first.cmd.Process.Pid)) || !strings.Contains(says, "pwos shutdown") {
		t.Errorf("its message is %q", says)
	}
	p := dial(t, first.KernelSocket)
	p.send(pings(1))
	p.wantPing(0)
}

// A killed daemon leaves its files; the next one replaces them.
func TestAfterSIGKILL(t *testing.T) {
	t.Parallel()
	dir := testkit.Dir(t)
	first := spawn(t, dir, nil).serving(t)
	testkit.Must(t, first.cmd.Process.Kill())
	testkit.Receive(t, first.exited, "the killed process's end")
	if _, err := os.Lstat(first.KernelSocket); err != nil {
		t.Fatalf("the killed daemon has left no socket: %v", err)
	}
	for _, path := range []string{spawn(t, dir, nil).serving(t).KernelSocket, first.EventsSocket} {
		p := dial(t, path)
		p.send(pings(1))
		p.wantPing(0)
	}
}

// Files of others stay, and none of the daemon's is left beside them.
func TestForeignPlaces(t *testing.T) {
	t.Parallel()
	tests := map[string]func(t *testing.T, r unixsock.Places){
		"file at the socket": func(t *testing.T, r unixsock.Places) {
			testkit.Must(t, os.WriteFile(r.KernelSocket, []byte("mine"), 0o600))
		},
		"link at the other socket": func(t *testing.T, r unixsock.Places) { testkit.Must(t, os.Symlink("/dev/null", r.EventsSocket)) },
		"open directory":           func(t *testing.T, r unixsock.Places) { testkit.Must(t, os.Chmod(r.Dir, 0o755)) },
		"stranger at the socket": func(t *testing.T, r unixsock.Places) {
			ln, err := net.Listen("unix", r.KernelSocket)
			testkit.Must(t, err)
			var accepted atomic.Int32
			go func() {
				for conn, err := ln.Accept(); err == nil; conn, err = ln.Accept() {
					accepted.Add(1)
					_, _ = conn.Write([]byte("220 mail\n"))
					_ = conn.Close()
				}
			}()
			t.Cleanup(func() { ln.Close() })
		},
	}
	for name, put := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := settingsIn(testkit.Dir(t))
			places := unixsock.PlacesIn(cfg.RuntimeDir)
			testkit.Must(t, unixsock.EnsurePrivateDir(places.Dir))
			put(t, places)
			before := listing(t, places.Dir)
			d := daemon.New(cfg, nil, discard())
			err := d.Open(testkit.Context(t))
			if err == nil || errors.Is(err, daemon.ErrRunning) || !strings.Contains(err.Error(), places.Dir) {
				t.Errorf("error %v, want one that names the place", err)
			}
			testkit.Must(t, d.Close())
			if after := listing(t, places.Dir); after != before {
				t.Errorf("the directory had\n%sand has\n%s", before, after)
			}
		})
	}
}

// listing lists the files in dir, except for the lock, which stays permanently.
func listing(t *testing.T, dir string) (list string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	testkit.Must(t, err)
	for _, e := range entries {
		if e.Name() == "kernel.lock" {
			continue
		}
		info, err := os.Lstat(filepath.Join(dir, e.Name()))
		testkit.Must(t, err)
		list += fmt.Sprintf("%s %v %d %v\n", e.Name(), info.Mode(), info.Size(), info.ModTime())
	}
	return list
}
