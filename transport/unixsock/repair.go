package unixsock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/promptware-os/pwos/internal/lockfile"
)

// Repair binds the socket again if it was removed from its path, as by a program that clears temporary directories, and
// reports whether it did. Open connections continue; those in the queue of the old socket are closed before any
// prologue, as by Close. lock is the one of Listen; nothing else may use it meanwhile. If another file is at the path,
// Repair does not change it and returns a fault.PlaceOccupied. It makes the lock's file and the directory again if they
// were removed too. If another daemon has taken them meanwhile, the error is a fault.PlaceLocked; if others may enter
// the directory, a fault.PlaceUnsafe. It does nothing for an inherited socket, which belongs to the manager, and for a
// closed one.
func (l *Listener) Repair(ctx context.Context, lock *Lock) (repaired bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil || l.closed {
		return false, nil
	}
	if missing, err := l.missing(); err != nil || !missing {
		return false, err
	}
	if err := lock.renew(); err != nil {
		return false, err
	}
	if err := CheckPrivateDir(filepath.Dir(l.path)); err != nil { // its mode may have been changed after the lock was taken
		return false, err
	}
	fresh, err := listenAt(ctx, lock, l.path, finding{state: Absent})
	if errors.Is(err, fs.ErrExist) { // made after the check above
		return false, l.occupied()
	}
	if err != nil {
		return false, err
	}
	// The new listener is set before the old one is closed, so that Accept continues with it.
	old := l.ln
	l.ln, l.file = fresh.ln, fresh.file
	if err := old.Close(); err != nil {
		return true, fmt.Errorf("close socket that was removed: %w", err)
	}
	return true, nil
}

// missing reports whether there is no file at the path. Another file than the bound socket is an error. While the
// socket listens, no other file can have its inode number.
func (l *Listener) missing() (bool, error) {
	there, err := os.Lstat(l.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("inspect socket: %w", err)
	case !os.SameFile(there, l.file):
		return false, l.occupied()
	}
	return false, nil
}

func (l *Listener) occupied() error {
	return occupied(l.path, 0, "is not the socket that this daemon bound")
}

// renew takes the lock again if its file was removed. If the directory was removed too, another daemon may have taken
// the lock before: then renew fails.
func (l *Lock) renew() error {
	if err := l.Verify(); !errors.Is(err, ErrLockReplaced) {
		return err
	}
	if err := EnsurePrivateDir(filepath.Dir(l.path)); err != nil {
		return err
	}
	fresh, err := acquire(l.path, tryLock)
	if err != nil {
		return err
	}
	dir, err := l.lockSameDir()
	if err != nil {
		return errors.Join(err, lockfile.Release(fresh.file))
	}
	old, oldDir := l.file, l.dir
	l.file, l.dir = fresh.file, dir
	err = lockfile.Release(old)
	if oldDir != nil && oldDir != dir {
		err = errors.Join(err, lockfile.Release(oldDir))
	}
	if err != nil {
		return fmt.Errorf("close lock that was removed: %w", err)
	}
	return nil
}

// lockSameDir returns the locked directory if it is still at its path; otherwise it locks the one that is.
func (l *Lock) lockSameDir() (*os.File, error) {
	path := filepath.Dir(l.path)
	if l.dir != nil {
		ours, err := l.dir.Stat()
		if err != nil {
			return nil, fmt.Errorf("inspect locked directory: %w", err)
		}
		if there, err := os.Lstat(path); err == nil && os.SameFile(ours, there) {
			return l.dir, nil
		}
	}
	return lockDir(path)
}
