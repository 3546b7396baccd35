package unixsock

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/internal/lockfile"
	"github.com/promptware-os/pwos/schema/fault"
)

// locked returns the error for an instance lock that the process pid holds; 0: the holder is not known.
func locked(path string, pid int) *fault.Fault {
	held := fault.PlaceLocked.New("another daemon holds %s", path).WithFix("end it with \"pwos shutdown\", or set PWOS_RUNTIME_DIR to another directory")
	if pid != 0 {
		held = fault.PlaceLocked.New("process %d holds %s", pid, path).WithFix("end it with \"pwos shutdown\" (\"kill %d\" if its socket was removed), "+
			"or set PWOS_RUNTIME_DIR to another directory", pid)
	}
	return held.With("path", path).With("pid", strconv.Itoa(pid))
}

// Lock is the instance lock: only its holder may bind and unlink the sockets in its directory (PROTOCOL 1). It is
// flock(2) on one descriptor: the system releases it when the process ends, and the same descriptor is used to verify
// the file and to write the holder's PID. (gofrs/flock does not export its descriptor; writing the PID through a second
// one would release the lock on file systems that emulate flock, such as NFS.) The file is never unlinked: otherwise
// one process could lock the old file and another the new one. In case another program unlinks it, a daemon also locks
// the directory. As it holds that lock all the time, no other program that can read the directory, such as an agent,
// can take it while a daemon runs.
type Lock struct {
	path string
	file *os.File
	dir  *os.File // locked too; nil for a client's lock, or if the file system cannot lock directories, such as NFS
}

// relocks bounds the attempts to lock a file that is replaced meanwhile, which does not happen by accident.
const relocks = 100

// AcquireLock locks the file at path without waiting and writes the PID of this process into it. It makes the file,
// 0600, if it does not exist; the directory must pass CheckPrivateDir. It returns a fault.PlaceLocked if another
// process, or another Lock of this one, holds the lock.
func AcquireLock(path string) (*Lock, error) {
	if err := CheckPrivateDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	return acquire(path, tryLock)
}

// AcquireInstanceLock is AcquireLock for a daemon. It waits a short time for the lock of a daemon that was just killed.
// It also locks the directory, so that only one daemon runs even if the file is removed.
func AcquireInstanceLock(path string) (*Lock, error) {
	if err := CheckPrivateDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	l, err := acquire(path, takeLock)
	if err != nil {
		return nil, err
	}
	if l.dir, err = lockDir(filepath.Dir(path)); err != nil {
		return nil, errors.Join(err, lockfile.Release(l.file))
	}
	return l, nil
}

// lockDir locks a directory. It returns nil if the file system has no such lock.
func lockDir(path string) (*os.File, error) {
	dir, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("lock directory: %w", err)
	}
	err = lockfile.Take(dir)
	switch {
	case err == nil:
		return dir, nil
	case errors.Is(err, lockfile.ErrHeld):
		err = locked(path, lockfile.Holder(dir))
	default:
		err = nil
	}
	return nil, errors.Join(err, dir.Close())
}

// acquire repeats try, which is tryLock or takeLock, until the locked file is the one at path.
func acquire(path string, try func(path string) (*Lock, error)) (*Lock, error) {
	for range relocks {
		l, err := try(path)
		if err != nil {
			return nil, err
		}
		err = l.Verify()
		if err == nil {
			err = l.claim()
		}
		if err == nil {
			return l, nil
		}
		if closeErr := lockfile.Release(l.file); closeErr != nil || !errors.Is(err, ErrLockReplaced) {
			return nil, errors.Join(err, closeErr)
		}
	}
	return nil, fmt.Errorf("lock %s: %w in each of %d attempts", path, ErrLockReplaced, relocks)
}

// tryLock opens and locks the file at path, which may be replaced before it is locked.
func tryLock(path string) (*Lock, error) { return openLock(path, lockfile.Try) }

// takeLock is tryLock with a short wait.
func takeLock(path string) (*Lock, error) { return openLock(path, lockfile.Take) }

func openLock(path string, lock func(*os.File) error) (*Lock, error) {
	// O_NONBLOCK in case it is a FIFO.
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if errors.Is(err, unix.ELOOP) {
		return nil, fault.Unsafe(path, "is a symbolic link", "remove the link")
	}
	if err != nil {
		return nil, fmt.Errorf("open instance lock: %w", err)
	}
	if err := lockFile(path, file, lock); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &Lock{path: path, file: file}, nil
}

// lockFile locks the open file if it is a regular file of this user. Its content does not matter: a holder may have
// crashed at any point.
func lockFile(path string, file *os.File, lock func(*os.File) error) error {
	info, err := file.Stat()
	switch {
	case err != nil:
		return fmt.Errorf("inspect instance lock: %w", err)
	case !info.Mode().IsRegular():
		return fault.Unsafe(path, "is not a regular file", "move it out of the way")
	case ownerOf(info) != os.Geteuid():
		return fault.Unsafe(path, fmt.Sprintf("belongs to user %d", ownerOf(info)), "move it out of the way")
	}
	err = lock(file)
	if errors.Is(err, lockfile.ErrHeld) {
		return locked(path, cmp.Or(lockfile.Holder(file), holder(file)))
	}
	return err
}

// holder returns the PID in a lock file, 0 if there is none. It is only for messages: between locking and writing, it
// is missing, or that of a crashed holder.
func holder(file *os.File) int {
	var text [20]byte
	n, err := file.ReadAt(text[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text[:n])))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}

// claim writes the PID of this process into the locked file. It sets the mode again, which a umask or another program
// may have changed.
func (l *Lock) claim() error {
	number := strconv.AppendInt(nil, int64(os.Getpid()), 10)
	err := l.file.Chmod(0o600)
	if err == nil {
		err = l.file.Truncate(0)
	}
	if err == nil {
		_, err = l.file.WriteAt(append(number, '\n'), 0)
	}
	if err != nil {
		return fmt.Errorf("write instance lock: %w", err)
	}
	return nil
}

// ErrLockReplaced means that the locked file is no longer the one at its path: it was removed or
// replaced.
var ErrLockReplaced = errors.New("instance lock was removed or replaced")

// Verify returns ErrLockReplaced if the locked file is no longer the one at the lock's path, so that the lock has no
// effect.
func (l *Lock) Verify() error {
	ours, err := l.file.Stat()
	if err != nil {
		return fmt.Errorf("inspect instance lock: %w", err)
	}
	there, err := os.Lstat(l.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ErrLockReplaced
	case err != nil:
		return fmt.Errorf("inspect instance lock: %w", err)
	case !os.SameFile(ours, there):
		return ErrLockReplaced
	}
	return nil
}

// Path returns the path of the lock file.
func (l *Lock) Path() string { return l.path }

// Release empties the file and unlocks it. Every Listener bound under the lock must be closed before. A second call
// returns os.ErrClosed.
func (l *Lock) Release() error {
	err := l.file.Truncate(0)
	if l.dir != nil {
		err = errors.Join(err, lockfile.Release(l.dir)) // before the file: the next holder of the file's lock takes it next
	}
	if err := errors.Join(err, lockfile.Release(l.file)); err != nil {
		return fmt.Errorf("release instance lock: %w", err)
	}
	return nil
}
