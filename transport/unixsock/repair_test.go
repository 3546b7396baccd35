package unixsock_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/internal/lockfile"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// TestRepairBindsAgain: a server whose sockets, lock file or directory were removed is reached again at the same path,
// and open connections continue.
func TestRepairBindsAgain(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	defer all.Wait()
	for name, remove := range map[string]func(unixsock.Places) error{
		"the sockets": func(p unixsock.Places) error {
			return errors.Join(os.Remove(p.KernelSocket), os.Remove(p.EventsSocket))
		},
		"the lock too":  func(p unixsock.Places) error { return errors.Join(os.RemoveAll(p.Dir), os.Mkdir(p.Dir, 0o700)) },
		"the directory": func(p unixsock.Places) error { return os.RemoveAll(p.Dir) },
	} {
		repair := func(t *testing.T) {
			places, lock := locked(t)
			listeners, err := unixsock.Listen(t.Context(), lock, places.KernelSocket, places.EventsSocket)
			must(t, err)
			server := unixsock.NewServer(unixsock.ServerConfig{Handler: echo, Endpoints: []unixsock.Endpoint{
				{Listener: listeners[0], Dialect: schema.OsMessage, MaxLine: schema.MaxLine},
				{Listener: listeners[1], Dialect: schema.OsEvent, MaxLine: schema.MaxEventLine},
			}})
			served := make(chan error, 1)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { served <- server.Serve(ctx) }()
			_, old := connectTo(t, places.KernelSocket)
			must(t, remove(places))

			for _, l := range listeners {
				if repaired, err := l.Repair(t.Context(), lock); err != nil || !repaired {
					t.Fatalf("repaired %v, %v", repaired, err)
				}
				if repaired, err := l.Repair(t.Context(), lock); err != nil || repaired {
					t.Errorf("an existing socket was repaired: %v, %v", repaired, err)
				}
			}
			must(t, lock.Verify())
			hello(t, places.KernelSocket)
			hello(t, places.EventsSocket)
			_, err = old.Write([]byte("hello\n"))
			must(t, err)
			if line, err := old.Next(); err != nil || string(line) != "hello" {
				t.Errorf("the open connection read %q, %v", line, err)
			}
			for _, path := range []string{places.KernelSocket, places.EventsSocket} {
				if mode := inode(t, path).Mode(); mode != fs.ModeSocket|0o600 {
					t.Errorf("%s: mode %v, want 0600", path, mode)
				}
			}
			if _, err := unixsock.AcquireInstanceLock(places.Lock); !errors.Is(err, fault.PlaceLocked) {
				t.Errorf("another daemon gets the lock: %v", err)
			}
			cancel()
			must(t, <-served)
			if got, want := dirNames(t, places.Dir), "kernel.lock"; got != want {
				t.Errorf("the directory holds %s, want %s", got, want)
			}
		}
		all.Go(func() { t.Run(name, repair) }) // all at once, since each mostly waits
	}
}

// TestRepairOccupied: another file at the path stays; after its removal the socket is bound again.
func TestRepairOccupied(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(path string) error{
		"a file": func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"a link": func(path string) error { return os.Symlink("kernel.lock", path) },
		"a dead socket": func(path string) error {
			ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
			if err != nil {
				return err
			}
			ln.SetUnlinkOnClose(false)
			return ln.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			places, lock := locked(t)
			listeners, err := unixsock.Listen(t.Context(), lock, places.KernelSocket)
			must(t, err)
			must(t, os.Remove(places.KernelSocket))
			must(t, put(places.KernelSocket))
			before := inode(t, places.KernelSocket)
			repaired, err := listeners[0].Repair(t.Context(), lock)
			if repaired || !errors.Is(err, fault.PlaceOccupied) {
				t.Errorf("repaired %v, %v, want fault.PlaceOccupied", repaired, err)
			}
			if !os.SameFile(before, inode(t, places.KernelSocket)) {
				t.Error("the other file was replaced")
			}
			must(t, os.Remove(places.KernelSocket))
			if repaired, err := listeners[0].Repair(t.Context(), lock); err != nil || !repaired {
				t.Errorf("repaired %v, %v", repaired, err)
			}
			must(t, listeners[0].Close())
			if repaired, err := listeners[0].Repair(t.Context(), lock); err != nil || repaired {
				t.Errorf("a closed one was repaired: %v, %v", repaired, err)
			}
		})
	}
}

// TestRepairLeavesTheNextDaemonAlone: if another daemon has made the removed directory again, the paths belong to that
// one.
func TestRepairLeavesTheNextDaemonAlone(t *testing.T) {
	t.Parallel()
	places, lock := locked(t)
	listeners, err := unixsock.Listen(t.Context(), lock, places.KernelSocket)
	must(t, err)
	must(t, errors.Join(os.RemoveAll(places.Dir), os.Mkdir(places.Dir, 0o700)))
	next, err := unixsock.AcquireInstanceLock(places.Lock)
	must(t, err)
	if repaired, err := listeners[0].Repair(t.Context(), lock); repaired || !errors.Is(err, fault.PlaceLocked) {
		t.Errorf("repaired %v, %v, want fault.PlaceLocked", repaired, err)
	}
	if got, want := dirNames(t, places.Dir), "kernel.lock"; got != want {
		t.Errorf("the directory holds %s, want %s", got, want)
	}
	must(t, next.Release())
	must(t, listeners[0].Close())
}

// TestRepairUnderTheDirectoryLock: while a daemon runs, no other one starts in its directory, even if the lock file and
// the sockets were removed; and no process that can read the directory can prevent the repair.
func TestRepairUnderTheDirectoryLock(t *testing.T) {
	t.Parallel()
	places, lock := locked(t)
	listeners, err := unixsock.Listen(t.Context(), lock, places.KernelSocket)
	must(t, err)
	must(t, errors.Join(os.Remove(places.KernelSocket), os.Remove(places.Lock)))
	_, err = unixsock.AcquireInstanceLock(places.Lock)
	if !lockedBy(err, places.Dir) {
		t.Errorf("another daemon: got %v, want that the directory is locked by this process", err)
	}
	dir, err := os.Open(places.Dir)
	must(t, err)
	t.Cleanup(func() { _ = dir.Close() })
	if err := lockfile.Try(dir); !errors.Is(err, lockfile.ErrHeld) {
		t.Errorf("the lock on the directory: got %v, want ErrHeld", err)
	}
	if repaired, err := listeners[0].Repair(t.Context(), lock); err != nil || !repaired {
		t.Errorf("repaired %v, %v", repaired, err)
	}
	must(t, lock.Verify())
	must(t, listeners[0].Close())
}

// TestRepairNeedsAPrivateDirectory: no socket is bound in a directory that others may enter.
func TestRepairNeedsAPrivateDirectory(t *testing.T) {
	t.Parallel()
	places, lock := locked(t)
	listeners, err := unixsock.Listen(t.Context(), lock, places.KernelSocket)
	must(t, err)
	must(t, os.Remove(places.KernelSocket))
	must(t, os.Chmod(places.Dir, 0o755))
	repaired, err := listeners[0].Repair(t.Context(), lock)
	if repaired || !errors.Is(err, fault.PlaceUnsafe) {
		t.Errorf("repaired %v, %v, want fault.PlaceUnsafe", repaired, err)
	}
	must(t, os.Chmod(places.Dir, 0o700))
	if repaired, err := listeners[0].Repair(t.Context(), lock); err != nil || !repaired {
		t.Errorf("repaired %v, %v", repaired, err)
	}
	must(t, listeners[0].Close())
}
