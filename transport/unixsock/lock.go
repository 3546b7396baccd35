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

// locked refuses the instance lock because another process holds it: pid, 0 if that has not yet written its number into the file.
func locked(path string, pid int) *fault.Fault {
	held := fault.PlaceLocked.New("another daemon holds %s", path).WithFix("end it with \"pwos shutdown\", or set PWOS_RUNTIME_DIR to another directory")
	if pid != 0 {
		held = fault.PlaceLocked.New("process %d holds %s", pid, path).WithFix("end it with \"pwos shutdown\" (\"kill %d\" where its socket was removed), "+
			"or set PWOS_RUNTIME_DIR to another directory", pid)
	}
	return held.With("path", path).With("pid", strconv.Itoa(pid))
}

// Lock is the instance lock: whoever holds it, and nobody else, may bind and unlink the sockets beside it (PROTOCOL 1).
//
// It is flock(2) on one descriptor of ours: the system gives it back whatever way the process ends, and that same
// descriptor proves which file was locked and carries the holder's number. (gofrs/flock keeps its descriptor to
// itself; writing the number through a second one would drop the lock where flock is emulated, as on NFS.)
//
// The file is never unlinked. Unlinking it would let one process lock the old file and another the new one, each
// alone. Against somebody else who unlinks it, a daemon locks the directory as well, for as long as the file is: so no
// other program, such as an agent that can read the directory, can take that lock while a daemon runs.
type Lock struct {
	path string
	file *os.File
	dir  *os.File // locked too; nil for a client's, and where the file system cannot lock a directory, as NFS
}

// relocks bounds how often the lock file may be replaced while it is being locked, which does not
// happen by accident even once.
const relocks = 100

// AcquireLock takes the lock file at path without waiting and writes our process number into it.
// The file is made 0600 if it does not exist; its directory must pass CheckPrivateDir. It returns a
// fault.PlaceLocked if another process, or another Lock of this one, has it.
func AcquireLock(path string) (*Lock, error) {
	if err := CheckPrivateDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	return acquire(path, tryLock)
}

// AcquireInstanceLock is AcquireLock for a daemon. It waits a short time for a daemon that was killed just now. It also locks
// the directory: only one daemon can have that, even if the file is removed.
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

// acquire repeats try, which is tryLock or takeLock, until the file that it locked is still the one at path.
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
	return nil, fmt.Errorf("lock %s: %w again and again", path, ErrLockReplaced)
}

// tryLock opens and locks the file that is at path now; it may be replaced before the lock is
// taken.
func tryLock(path string) (*Lock, error) { return openLock(path, lockfile.Try) }

// takeLock is tryLock that waits a short time.
func takeLock(path string) (*Lock, error) { return openLock(path, lockfile.Take) }

func openLock(path string, lock func(*os.File) error) (*Lock, error) {
	// O_NONBLOCK is for a FIFO at the path.
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

// lockFile locks the opened file, if it is one that only we can have made. Its content does not matter: a holder may have
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

// holder reads the process number in a lock file. It is for people only: between the locking and
// the writing, it is missing, or that of a crashed holder.
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

// claim writes our number into the locked file. The mode is set again because a umask may have taken from it, or an
// earlier hand may have added to it.
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

// Verify returns ErrLockReplaced if the locked file is no longer the one at the lock's path, so
// that it excludes no one any more.
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

// Path returns where the lock file was locked.
func (l *Lock) Path() string { return l.path }

// Release unlocks and leaves the file, emptied, where it is. Every Listener bound under the lock
// must be closed before. A second call returns os.ErrClosed.
func (l *Lock) Release() error {
	err := l.file.Truncate(0)
	if l.dir != nil {
		err = errors.Join(err, lockfile.Release(l.dir)) // first: who gets the file's wants it next
	}
	if err := errors.Join(err, lockfile.Release(l.file)); err != nil {
		return fmt.Errorf("release instance lock: %w", err)
	}
	return nil
}
