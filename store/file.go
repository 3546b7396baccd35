//go:build unix

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/promptware-os/pwos/internal/lockfile"
)

// lockFile opens the database file, makes it where it is missing, and locks it. SQLite gives -wal and -shm the mode that
// it finds here, so this comes first.
//
// The lock is flock(2) on the file itself and leaves no file behind. SQLite's own locks are of another kind, fcntl(2), and
// a process loses those on a file when it closes any descriptor of it: so this one is closed after the last connection.
func lockFile(path string) (_ *os.File, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if info.Mode().Perm() != 0o600 {
		if err := f.Chmod(0o600); err != nil {
			return nil, err
		}
	}
	if err := lockfile.Try(f); errors.Is(err, lockfile.ErrHeld) {
		return nil, ErrLocked
	} else if err != nil {
		return nil, err
	}
	if info.Size() == 0 {
		// Whatever log is there belongs to a file that is gone.
		return f, removeLogs(path)
	}
	return f, nil
}

// emptyFile makes the file what it was when it was new. It is cut and not removed, for the lock is on it.
func emptyFile(f *os.File, path string) error {
	// The logs go first: a crash in between leaves a file that Open finds unusable again, never one with a foreign log.
	if err := removeLogs(path); err != nil {
		return err
	}
	return f.Truncate(0)
}

func removeLogs(path string) error {
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
