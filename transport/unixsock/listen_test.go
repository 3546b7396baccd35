package unixsock_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
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

// speak makes each listener send the prologue, as a daemon does.
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
	leaveStale(t, places.EventsSocket) // one is new, the other replaced
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
		must(t, l.Close()) // returns the result of the first
	}
	if got, want := dirNames(t, places.Dir), "kernel.lock"; got != want {
		t.Errorf("the directory holds %s, want %s", got, want)
	}
}

// TestListenChangesNoOtherFile: if the second path is in use, the first is not changed.
func TestListenChangesNoOtherFile(t *testing.T) {
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

// TestListenRace: of daemons that start while the lock file is deleted again and again, at most one gets the socket.
func TestListenRace(t *testing.T) {
	t.Parallel()
	var rounds sync.WaitGroup
	defer rounds.Wait()
	for i := range testkit.Rounds(4, 20, 200) {
		round := func(t *testing.T) {
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
		}
		rounds.Go(func() { t.Run(strconv.Itoa(i), round) }) // all at once, since a round mostly waits
	}
}

func TestListenNeedsTheLockOfItsDirectory(t *testing.T) {
	t.Parallel()
	places, lock := locked(t)
	if _, err := unixsock.Listen(t.Context(), lock, privatePlaces(t).KernelSocket); err == nil {
		t.Error("the lock of another directory was accepted")
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
				t.Error("the file was replaced")
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

// TestPublishWithoutLinks: on a file system without hard links to sockets, a socket is renamed, but does not replace a
// file.
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
		t.Error("the file was replaced")
	}
	if got := dirNames(t, places.Dir); got != "kernel.sock" {
		t.Errorf("the directory holds %s", got)
	}
}

// TestModesDoNotDependOnTheUmask: the modes of files do not depend on the umask. Since that is of the whole process,
// each is tried in a process of its own.
func TestModesDoNotDependOnTheUmask(t *testing.T) {
	const role = "UNIXSOCK_TEST_UMASK_DIR"
	if dir := os.Getenv(role); dir != "" {
		makeUnderUmask(t, dir)
		return
	}
	t.Parallel()
	for _, mask := range []string{"0000", "0077", "0277", "0177"} {
		t.Run(mask, func(t *testing.T) {
			t.Parallel()
			child := exec.Command(os.Args[0], "-test.run=^TestModesDoNotDependOnTheUmask$")
			child.Env = append(os.Environ(), role+"="+tempPlaces(t).Dir, "UNIXSOCK_TEST_UMASK="+mask, "GORACE=atexit_sleep_ms=0")
			if out, err := child.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func makeUnderUmask(t *testing.T, dir string) {
	places := unixsock.PlacesIn(dir)
	mask := map[string]int{"0000": 0, "0077": 0o077, "0277": 0o277, "0177": 0o177}[os.Getenv("UNIXSOCK_TEST_UMASK")]
	must(t, os.Mkdir(dir, 0o700)) // a umask with the owner's bits would make unusable parents
	syscall.Umask(mask)
	must(t, unixsock.EnsurePrivateDir(dir))
	lock, err := unixsock.AcquireInstanceLock(places.Lock)
	must(t, err)
	listeners, err := unixsock.Listen(t.Context(), lock, places.KernelSocket)
	must(t, err)
	for path, want := range map[string]fs.FileMode{
		places.Dir:          fs.ModeDir | 0o700,
		places.Lock:         0o600,
		places.KernelSocket: fs.ModeSocket | 0o600,
	} {
		if got := inode(t, path).Mode(); got != want {
			t.Errorf("%s: mode %v, want %v", path, got, want)
		}
	}
	must(t, listeners[0].Close())
	must(t, lock.Release())
}
