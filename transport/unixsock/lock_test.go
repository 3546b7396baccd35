package unixsock_test

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/promptware-os/pwos/internal/lockfile"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

func TestLockExcludesOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		places, _ := locked(t)
		_, err := unixsock.AcquireInstanceLock(places.Lock)
		if !errors.Is(err, fault.PlaceLocked) {
			t.Fatalf("got %v, want fault.PlaceLocked", err)
		}
		if pid := fault.Of(err).Detail("pid"); !lockedBy(err, places.Lock) || pid == "0" {
			t.Errorf("got %#v, want the lock's path and process %d", err, os.Getpid())
		}
		for _, want := range []string{places.Lock, strconv.Itoa(os.Getpid())} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not name %s", err, want)
			}
		}
		if mode := inode(t, places.Lock).Mode(); mode != 0o600 {
			t.Errorf("the file's mode is %v, want 0600", mode)
		}
	})
}

func TestLockHasOneHolder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		places := privatePlaces(t)
		var (
			wait   sync.WaitGroup
			start  = make(chan struct{})
			won    atomic.Int32
			winner atomic.Pointer[unixsock.Lock]
		)
		for range 64 {
			wait.Go(func() {
				<-start
				lock, err := unixsock.AcquireInstanceLock(places.Lock)
				switch {
				case err == nil:
					won.Add(1)
					winner.Store(lock)
				case !errors.Is(err, fault.PlaceLocked):
					t.Errorf("got %v, want fault.PlaceLocked", err)
				}
			})
		}
		close(start)
		wait.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d got the lock", won.Load())
		}
		must(t, winner.Load().Release())
	})
}

// TestLockOfARemovedFileDoesNotCount: a lock on a file that was removed or replaced between its opening and its locking
// does not count.
func TestLockOfARemovedFileDoesNotCount(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		removals int
		want     error
	}{
		{"never", 0, nil},
		{"once", 1, nil},
		{"often", 50, nil},
		{"always", 1000, unixsock.ErrLockReplaced},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			places, removals := privatePlaces(t), tt.removals
			lock, err := unixsock.Acquire(places.Lock, func(path string) (*unixsock.Lock, error) {
				lock, err := unixsock.TryLock(path)
				if removals > 0 {
					removals--
					must(t, os.Remove(path))
				}
				return lock, err
			})
			if !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			if err == nil {
				must(t, lock.Verify())
				must(t, lock.Release())
			}
		})
	}
}

func TestLockDetectsReplacement(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(path string) error{
		"removed": os.Remove,
		"replaced": func(path string) error {
			if err := os.WriteFile(path+".new", nil, 0o600); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			places, lock := locked(t)
			must(t, lock.Verify())
			must(t, replace(places.Lock))
			if err := lock.Verify(); !errors.Is(err, unixsock.ErrLockReplaced) {
				t.Errorf("got %v, want ErrLockReplaced", err)
			}
		})
	}
}

// TestLockOfTheDirectoryIsHeld: if another process holds the lock of the directory, the start fails after a bounded
// wait, and names the process.
func TestLockOfTheDirectoryIsHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		places := privatePlaces(t)
		dir, err := os.Open(places.Dir)
		must(t, err)
		must(t, lockfile.Try(dir))
		_, err = unixsock.AcquireInstanceLock(places.Lock)
		if !lockedBy(err, places.Dir) {
			t.Errorf("got %v, want that this process holds the lock of the directory", err)
		}
		must(t, lockfile.Release(dir))
		lock, err := unixsock.AcquireInstanceLock(places.Lock)
		must(t, err)
		must(t, lock.Release())
	})
}

// TestReleasedLockIsFreeBesideAFork: a released lock is free at once, also while this process starts a child.
func TestReleasedLockIsFreeBesideAFork(t *testing.T) {
	t.Parallel()
	places := privatePlaces(t)
	lock, err := unixsock.AcquireInstanceLock(places.Lock)
	must(t, err)
	testkit.Forked(t, places.Lock)
	testkit.Forked(t, places.Dir)
	must(t, lock.Release())
	again, err := unixsock.AcquireInstanceLock(places.Lock)
	must(t, err)
	must(t, again.Release())
}

// TestLockOfAKilledDaemon: a start waits a short time for the lock of a killed daemon, which a forked child may still
// hold.
func TestLockOfAKilledDaemon(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]func(unixsock.Places) string{
		"file":      func(p unixsock.Places) string { return p.Lock },
		"directory": func(p unixsock.Places) string { return p.Dir },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			places := privatePlaces(t)
			lock, err := unixsock.AcquireInstanceLock(places.Lock)
			must(t, err)
			must(t, lock.Release())
			child, err := os.Open(at(places))
			must(t, err)
			must(t, lockfile.Try(child))
			synctest.Test(t, func(t *testing.T) {
				acquired := make(chan error)
				go func() {
					next, err := unixsock.AcquireInstanceLock(places.Lock)
					if err == nil {
						err = next.Release()
					}
					acquired <- err
				}()
				synctest.Wait() // until the start has found the lock held
				must(t, lockfile.Release(child))
				must(t, <-acquired)
			})
		})
	}
}

func TestReleasedLockIsFreeAndItsFileStays(t *testing.T) {
	t.Parallel()
	places := privatePlaces(t)
	for range 2 {
		lock, err := unixsock.AcquireInstanceLock(places.Lock)
		must(t, err)
		must(t, lock.Release())
		if info := inode(t, places.Lock); info.Size() != 0 {
			t.Errorf("the file still names its holder: %d bytes", info.Size())
		}
		if err := lock.Release(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("second release: got %v, want os.ErrClosed", err)
		}
	}
}

func TestLockFileOfAnotherProgram(t *testing.T) {
	t.Parallel()
	places := privatePlaces(t)
	must(t, os.WriteFile(places.Lock, []byte("no number, and much longer than one\n"), 0o600))
	must(t, os.Chmod(places.Lock, 0o666))
	lock, err := unixsock.AcquireInstanceLock(places.Lock)
	must(t, err)
	text, err := os.ReadFile(places.Lock)
	must(t, err)
	if want := strconv.Itoa(os.Getpid()) + "\n"; string(text) != want {
		t.Errorf("the file says %q, want %q", text, want)
	}
	if mode := inode(t, places.Lock).Mode(); mode != 0o600 {
		t.Errorf("the file's mode is %v, want 0600", mode)
	}
	must(t, lock.Release())
}

// lockedBy reports whether err means that path is locked, by this process or an unknown one.
func lockedBy(err error, path string) bool {
	held := fault.Of(err)
	pid := held.Detail("pid")
	return held.ID == fault.PlaceLocked && held.Detail("path") == path && (pid == "0" || pid == strconv.Itoa(os.Getpid()))
}

func TestLockedWithoutANumber(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"empty": "", "words": "none", "negative": "-1\n", "too long": strings.Repeat("9", 40)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				places, _ := locked(t)
				must(t, os.WriteFile(places.Lock, []byte(text), 0o600))
				_, err := unixsock.AcquireInstanceLock(places.Lock)
				if !lockedBy(err, places.Lock) {
					t.Errorf("got %#v, want fault.PlaceLocked with the holder's number or none", err)
				}
			})
		})
	}
}

func TestHostileLockFile(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		make func(path string) error
	}{
		{"symbolic link", func(path string) error { return os.Symlink(path+".target", path) }},
		{"FIFO", func(path string) error { return syscall.Mkfifo(path, 0o600) }},
		{"directory", func(path string) error { return os.Mkdir(path, 0o700) }},
	}
	if os.Geteuid() == 0 { // only root can change the owner
		tests = append(tests, struct {
			name string
			make func(path string) error
		}{"another user's", func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Chown(path, 12345, -1))
		}})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			places := privatePlaces(t)
			must(t, tt.make(places.Lock))
			before := inode(t, places.Lock)
			if _, err := unixsock.AcquireInstanceLock(places.Lock); err == nil || !strings.Contains(err.Error(), places.Lock) {
				t.Errorf("got %v, want an error that names %s", err, places.Lock)
			}
			if after := inode(t, places.Lock); !os.SameFile(before, after) || before.Mode() != after.Mode() {
				t.Error("the file was changed")
			}
			if _, err := os.Lstat(places.Lock + ".target"); !errors.Is(err, fs.ErrNotExist) {
				t.Error("a file was made through the link")
			}
		})
	}
}

func TestLockNeedsAPrivateDirectory(t *testing.T) {
	t.Parallel()
	places := privatePlaces(t)
	must(t, os.Chmod(places.Dir, 0o755))
	_, err := unixsock.AcquireInstanceLock(places.Lock)
	if !errors.Is(err, fault.PlaceUnsafe) {
		t.Errorf("got %v, want fault.PlaceUnsafe", err)
	}
}
