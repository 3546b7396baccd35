package client_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

func TestDialNotRunning(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(unixsock.Places){
		"no directory": func(unixsock.Places) {},
		"no socket":    func(p unixsock.Places) { testkit.Must(t, unixsock.EnsurePrivateDir(p.Dir)) },
		"stale socket": func(p unixsock.Places) { leaveStale(t, p) },
	} {
		places := tempPlaces(t)
		prepare(places)
		_, err := client.Dial(testkit.Context(t), client.Options{RuntimeDir: places.Dir})
		if !errors.Is(err, fault.DaemonNotRunning) || fault.Of(err).ID != fault.DaemonUnreachable || fault.Of(err).Detail("socket") != places.KernelSocket {
			t.Errorf("%s: error %v, want fault.DaemonNotRunning with the socket", name, err)
		}
	}
}

// leaveStale makes the socket file of a killed daemon, which refuses connections.
func leaveStale(t testing.TB, places unixsock.Places) {
	t.Helper()
	testkit.Must(t, unixsock.EnsurePrivateDir(places.Dir))
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: places.KernelSocket, Net: "unix"})
	testkit.Must(t, err)
	ln.SetUnlinkOnClose(false)
	testkit.Must(t, ln.Close())
}

// spawned dials with a fake daemon of the given mode to start, and ends it after the test.
func spawned(t testing.TB, places unixsock.Places, mode string) (*client.Client, error) {
	t.Helper()
	c, err := client.Dial(testkit.Context(t), client.Options{RuntimeDir: places.Dir, Spawn: fake(t, mode), Patience: testkit.Patience})
	if err == nil {
		t.Cleanup(func() {
			testkit.Must(t, c.Close())
			testkit.Must(t, syscall.Kill(c.PID(), syscall.SIGKILL))
			_, err := syscall.Wait4(c.PID(), nil, 0, nil)
			testkit.Must(t, err)
		})
	}
	return c, err
}

func TestDialSpawns(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prepare func(unixsock.Places)
		mode    string
		starts  int
	}{
		"no directory":           {func(unixsock.Places) {}, "serve", 1},
		"after kill -9":          {func(p unixsock.Places) { leaveStale(t, p) }, "serve", 1},
		"while another one ends": {func(unixsock.Places) {}, "occupied", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			places := tempPlaces(t)
			tt.prepare(places)
			c, err := spawned(t, places, tt.mode)
			testkit.Must(t, err)
			if _, err := c.Call(testkit.Context(t), schema.KindQuery, "A.B", nil); err != nil {
				t.Error(err)
			}
			if got := countStarts(t, places); tt.starts != 0 && got != tt.starts {
				t.Errorf("%d daemons were started, want %d", got, tt.starts)
			}
		})
	}
}

func countStarts(t testing.TB, places unixsock.Places) int {
	t.Helper()
	marks, err := os.ReadFile(starts(places.Dir))
	testkit.Must(t, err)
	return bytes.Count(marks, []byte("\n"))
}

// TestDialTogether: clients that dial at the same time start one daemon.
func TestDialTogether(t *testing.T) {
	t.Parallel()
	const crowd = 64
	places := tempPlaces(t)
	leaveStale(t, places)
	options := client.Options{RuntimeDir: places.Dir, Spawn: fake(t, "serve"), Patience: testkit.Patience}
	ctx := testkit.Context(t)
	pids := make([]int, crowd)
	var dials sync.WaitGroup
	for i := range crowd {
		dials.Go(func() {
			c, err := client.Dial(ctx, options)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			pids[i] = c.PID()
			if _, err := c.Call(ctx, schema.KindQuery, "A.B", nil); err != nil {
				t.Error(err)
			}
		})
	}
	dials.Wait()
	for _, pid := range pids {
		if pid != pids[0] {
			t.Errorf("kernels %d and %d", pid, pids[0])
		}
	}
	if got := countStarts(t, places); got != 1 {
		t.Errorf("%d daemons were started, want 1", got)
	}
	testkit.Must(t, syscall.Kill(pids[0], syscall.SIGKILL))
	_, err := syscall.Wait4(pids[0], nil, 0, nil)
	testkit.Must(t, err)
}

func TestDialSpawnFails(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string][]string{
		"refuse": {"the state is unreadable", "kernel.log", "\n  fake: reading the state", "\n  fake: giving up"},
		"die":    {"before it was ready", "exit status 7", "fake: last words"},
		"babble": {`it wrote "HELLO"`},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			places := tempPlaces(t)
			_, err := spawned(t, places, mode)
			launch := fault.Of(fault.Of(err).Err) // behind the fault.DaemonUnreachable
			if launch.ID != fault.DaemonLaunch || launch.Detail("log") != places.Log {
				t.Fatalf("error %v, want fault.DaemonLaunch with the log", err)
			}
			for _, part := range want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %v does not say %q", err, part)
				}
			}
			noneLeft(t, places)
		})
	}
}

// noneLeft checks that every started fake daemon has ended and was waited for.
func noneLeft(t testing.TB, places unixsock.Places) {
	t.Helper()
	marks, err := os.ReadFile(starts(places.Dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // on a busy machine no daemon may have started yet
		t.Fatal(err)
	}
	for _, mark := range strings.Fields(string(marks)) {
		pid, err := strconv.Atoi(mark)
		testkit.Must(t, err)
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d still runs", pid)
		}
	}
}

// TestDialSpawnFailsQuotesItsOwnLines: an error does not quote lines that an earlier daemon logged.
func TestDialSpawnFailsQuotesItsOwnLines(t *testing.T) {
	t.Parallel()
	places := tempPlaces(t)
	testkit.Must(t, unixsock.EnsurePrivateDir(places.Dir))
	testkit.Must(t, os.WriteFile(places.Log, []byte("an old complaint\n"), 0o600))
	_, err := spawned(t, places, "die")
	if err == nil || strings.Contains(err.Error(), "old complaint") {
		t.Errorf("error %v", err)
	}
}

func TestDialPatience(t *testing.T) {
	t.Parallel()
	places := tempPlaces(t)
	_, err := client.Dial(testkit.Context(t), client.Options{RuntimeDir: places.Dir, Spawn: fake(t, "hang"), Patience: time.Second})
	if !errors.Is(err, fault.DaemonLaunch) || !errors.Is(err, fault.DaemonNoAnswer) || !strings.Contains(err.Error(), "within 1s") {
		t.Errorf("error %v, want fault.DaemonLaunch that names the time", err)
	}
	noneLeft(t, places)
}

func TestDialCancelled(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(testkit.Context(t))
	places := tempPlaces(t)
	testkit.Must(t, unixsock.EnsurePrivateDir(places.Dir))
	ln, err := net.Listen("unix", places.KernelSocket)
	testkit.Must(t, err)
	accepted := make(chan net.Conn, 1)
	go func() {
		defer close(accepted)
		if conn, err := ln.Accept(); err == nil {
			cancel(enough) // the server sends no prologue
			accepted <- conn
		}
	}()
	if _, err := client.Dial(ctx, client.Options{RuntimeDir: places.Dir}); !errors.Is(err, enough) {
		t.Errorf("error %v, want the cause of the context's end", err)
	}
	testkit.Must(t, ln.Close())
	if conn := <-accepted; conn != nil {
		testkit.Must(t, conn.Close())
	}
}

// TestDialRetriesWhenHungUpOn: a daemon that is shutting down closes without a prologue, and Dial tries again.
func TestDialRetriesWhenHungUpOn(t *testing.T) {
	t.Parallel()
	places := tempPlaces(t)
	testkit.Must(t, unixsock.EnsurePrivateDir(places.Dir))
	ln, err := net.Listen("unix", places.KernelSocket)
	testkit.Must(t, err)
	done := make(chan error, 1)
	go func() {
		conn, err := ln.Accept()
		if err == nil {
			err = errors.Join(conn.Close(), ln.Close())
		}
		done <- err
	}()
	c, err := spawned(t, places, "serve")
	testkit.Must(t, err)
	testkit.Must(t, <-done)
	if _, err := c.Call(testkit.Context(t), schema.KindQuery, "A.B", nil); err != nil {
		t.Error(err)
	}
}

// TestDialRefuses: Dial starts no daemon in a runtime directory that a daemon would refuse.
func TestDialRefuses(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(unixsock.Places){
		"a regular file":    func(p unixsock.Places) { testkit.Must(t, os.WriteFile(p.KernelSocket, nil, 0o600)) },
		"a symbolic link":   func(p unixsock.Places) { testkit.Must(t, os.Symlink("elsewhere", p.KernelSocket)) },
		"an open directory": func(p unixsock.Places) { testkit.Must(t, os.Chmod(p.Dir, 0o777)) },
		"a link as log":     func(p unixsock.Places) { testkit.Must(t, os.Symlink("elsewhere", p.Log)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			places := tempPlaces(t)
			testkit.Must(t, unixsock.EnsurePrivateDir(places.Dir))
			prepare(places)
			_, err := spawned(t, places, "serve")
			if !errors.Is(err, fault.DaemonUnreachable) {
				t.Errorf("error %v, want fault.DaemonUnreachable", err)
			}
			if _, err := os.Stat(starts(places.Dir)); err == nil {
				t.Error("a daemon was started")
			}
		})
	}
}

// TestDialStranger: a server that speaks another protocol is reported.
func TestDialStranger(t *testing.T) {
	t.Parallel()
	places := tempPlaces(t)
	testkit.Must(t, unixsock.EnsurePrivateDir(places.Dir))
	ln, err := net.Listen("unix", places.KernelSocket)
	testkit.Must(t, err)
	done := make(chan error, 1)
	go func() {
		conn, err := ln.Accept()
		if err == nil {
			_, err = conn.Write([]byte("220 welcome\r\n"))
			err = errors.Join(err, conn.Close())
		}
		done <- err
	}()
	_, err = spawned(t, places, "serve")
	if !errors.Is(err, access.ErrNoPrologue) {
		t.Errorf("error %v, want ErrNoPrologue", err)
	}
	testkit.Must(t, <-done)
	testkit.Must(t, ln.Close())
}
