package unixsock_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// speak makes each listener a daemon as far as a probe can tell.
func speak(t testing.TB, listeners ...*unixsock.Listener) {
	t.Helper()
	var wait sync.WaitGroup
	for _, l := range listeners {
		wait.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				if _, err := conn.Write([]byte(prologueMessage)); err == nil {
					waitEOF(conn)
				}
				conn.Close()
			}
		})
	}
	t.Cleanup(func() {
		for _, l := range listeners {
			must(t, l.Close())
		}
		wait.Wait()
	})
}

func dirNames(t testing.TB, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestListenAtBothSockets(t *testing.T) {
	t.Parallel()
	places, lock := locked(t)
	leaveStale(t, places.EventsSocket) // the one is new, the other replaced
	listeners, err := unixsock.Listen(t.Context(), lock, places.KernelSocket, places.EventsSocket)
	must(t, err)
	for i, path := range []string{places.KernelSocket, places.EventsSocket} {
		if mode := inode(t, path).Mode(); mode != fs.ModeSocket|0o600 {
			t.Errorf("%s: mode %v, want 0600", path, mode)
		}
		if got := listeners[i].Addr().String(); got != path {
			t.Errorf("address is %s, want %s", got, path)
		}
		conn, err := unixsock.Dial(t.Context(), path)
		must(t, err)
		must(t, conn.Close())
	}
	if got, want := dirNames(t, places.Dir), "events.sock kernel.lock kernel.sock"; got != want {
		t.Errorf("the directory holds %s, want %s", got, want)
	}
	for _, l := range listeners {
		must(t, l.Close())
		must(t, l.Close()) // as the first time
	}
	if got, want := dirNames(t, places.Dir), "kernel.lock"; got != want {
		t.Errorf("the directory holds %s, want %s", got, want)
	}
}

// The second path decides as much as the first, which must then be as it was.
func TestListenTouchesNothingThatIsNotOurs(t *testing.T) {
	t.Parallel()
	for _, tt := range occupants {
		if tt.want == unixsock.Absent || tt.want == unixsock.Stale {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			places, lock := locked(t)
			leaveStale(t, places.KernelSocket)
			tt.make(t, places.EventsSocket)
			before := [...]fs.FileInfo{inode(t, places.KernelSocket), inode(t, places.EventsSocket)}
			names := dirNames(t, places.Dir)

			_, err := unixsock.Listen(t.Context(), lock, places.KernelSocket, places.EventsSocket)
			if want := map[unixsock.Liveness]fault.ID{unixsock.Alive: fault.PlaceServed, unixsock.Foreign: fault.PlaceOccupied}[tt.want]; !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
			after := [...]fs.FileInfo{inode(t, places.KernelSocket), inode(t, places.EventsSocket)}
			for i := range before {
				if !os.SameFile(before[i], after[i]) {
					t.Errorf("%s was replaced", before[i].Name())
				}
			}
			if got := dirNames(t, places.Dir); got != names {
				t.Errorf("the directory holds %s, want %s", got, names)
			}
		})
	}
}

// Daemons that start at once while somebody keeps deleting the lock file: one at most gets the socket.
func TestListenRace(t *testing.T) {
	t.Parallel()
	for i := range testkit.Rounds(4, 20, 200) {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			places := privatePlaces(t)
			leaveStale(t, places.KernelSocket)
			var (
				wait  sync.WaitGroup
				mu    sync.Mutex
				won   []*unixsock.Listener
				locks []*unixsock.Lock
			)
			for range 8 {
				wait.Go(func() {
					_ = os.Remove(places.Lock)
					lock, err := unixsock.AcquireInstanceLock(places.Lock)
					if err != nil {
						return
					}
					listeners, err := unixsock.Listen(t.Context(), lock, places.KernelSocket)
					mu.Lock()
					defer mu.Unlock()
					locks = append(locks, lock)
					if err == nil {
						speak(t, listeners...)
						won = append(won, listeners...)
					}
				})
			}
			wait.Wait()
			if len(won) > 1 {
				t.Errorf("%d listen", len(won))
			}
			for _, lock := range locks {
				must(t, lock.Release())
			}
		})
	}
}

func TestListenNeedsTheLockOfItsDirectory(t *testing.T) {
	t.Parallel()
	places, lock := locked(t)
	if _, err := unixsock.Listen(t.Context(), lock, privatePlaces(t).KernelSocket); err == nil {
		t.Error("a lock guards another directory's socket")
	}
	must(t, os.Remove(places.Lock))
	if _, err := unixsock.Listen(t.Context(), lock, places.KernelSocket); !errors.Is(err, unixsock.ErrLockReplaced) {
		t.Errorf("got %v, want ErrLockReplaced", err)
	}
	if got := dirNames(t, places.Dir); got != "" {
		t.Errorf("the directory holds %s", got)
	}
}

func TestCloseUnlinksOnlyItsOwn(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(path string) error{
		"another socket": func(path string) error {
			ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
			if err != nil {
				return err
			}
			ln.SetUnlinkOnClose(false)
			return ln.Close()
		},
		"a file": func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"a link": func(path string) error { return os.Symlink("kernel.lock", path) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			places, lock := locked(t)
			listeners, err := unixsock.Listen(t.Context(), lock, places.KernelSocket)
			must(t, err)
			must(t, os.Remove(places.KernelSocket))
			must(t, replace(places.KernelSocket))
			before := inode(t, places.KernelSocket)
			must(t, listeners[0].Close())
			if !os.SameFile(before, inode(t, places.KernelSocket)) {
				t.Error("it was replaced")
			}
		})
	}
}

func TestInheritedSocketIsNotUnlinked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(privatePlaces(t).Dir, "managed.sock")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must(t, err)
	inherited := unixsock.Inherited(ln)
	if got := inherited.Addr().String(); got != path {
		t.Errorf("address is %s, want %s", got, path)
	}
	must(t, inherited.Close())
	inode(t, path)
}

// A file system that knows no second name for a socket: it is renamed, but over nothing.
func TestPublishWithoutLinks(t *testing.T) {
	t.Parallel()
	noLinks := func(string, string) error { return syscall.EPERM }
	places := privatePlaces(t)
	hidden := filepath.Join(places.Dir, ".hidden")
	leaveStale(t, hidden)
	before := inode(t, hidden)
	info, err := unixsock.Publish(hidden, places.KernelSocket, noLinks)
	must(t, err)
	if !os.SameFile(before, info) || !os.SameFile(before, inode(t, places.KernelSocket)) {
		t.Error("another file was published")
	}

	leaveStale(t, hidden)
	if _, err := unixsock.Publish(hidden, places.KernelSocket, noLinks); !errors.Is(err, syscall.EPERM) {
		t.Errorf("got %v, want EPERM", err)
	}
	if !os.SameFile(before, inode(t, places.KernelSocket)) {
		t.Error("what was there was replaced")
	}
	if got := dirNames(t, places.Dir); got != "kernel.sock" {
		t.Errorf("the directory holds %s", got)
	}
}
