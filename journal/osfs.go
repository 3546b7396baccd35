//go:build unix

package journal

import (
	"errors"
	"fmt"
	"os"

	"github.com/promptware-os/pwos/internal/lockfile"
)

// OSFS is the file system of the operating system.
type OSFS struct{}

var _ FS = OSFS{}

// Mkdir implements FS.
func (OSFS) Mkdir(name string) error { return os.Mkdir(name, 0o700) }

// ReadDir implements FS.
func (OSFS) ReadDir(name string) ([]string, error) {
	d, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	names, err := d.Readdirnames(-1)
	return names, errors.Join(err, d.Close())
}

// Open implements FS.
func (OSFS) Open(name string) (File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Create implements FS.
func (OSFS) Create(name string) (File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Rename implements FS.
func (OSFS) Rename(from, to string) error { return os.Rename(from, to) }

// SyncDir implements FS.
func (OSFS) SyncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Lock implements FS with flock(2) on the directory itself: it leaves no file behind, and ends with the process.
func (OSFS) Lock(dir string) (Dir, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	err = lockfile.Try(d)
	if errors.Is(err, lockfile.ErrHeld) {
		err = ErrLocked
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), d.Close())
	}
	return lockedDir{d}, nil
}

type lockedDir struct{ *os.File }

func (l lockedDir) Close() error { return lockfile.Release(l.File) }

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}
