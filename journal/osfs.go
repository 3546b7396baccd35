//go:build unix

package journal

import (
	"errors"
	"fmt"
	"io"
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

// Remove implements FS.
func (OSFS) Remove(name string) error { return os.Remove(name) }

// SyncDir implements FS.
func (OSFS) SyncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Lock implements FS with flock(2) on the directory itself, which leaves no file behind and ends with the process. It waits
// a short time for a process that was just killed.
func (OSFS) Lock(dir string) (Dir, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	err = lockfile.Take(d)
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

// FS is the part of a file system that a journal needs. Files are read and written only at offsets, so a failed write
// leaves no unknown position. Errors wrap those of io/fs (ErrNotExist, ErrExist) and the system's (ENOSPC, EIO).
type FS interface {
	// Mkdir creates one directory with mode 0700; its parent must exist.
	Mkdir(name string) error

	// ReadDir returns the base names in a directory, in any order.
	ReadDir(name string) ([]string, error)

	// Open opens a file that exists, for reading.
	Open(name string) (File, error)

	// Create opens a file for reading and writing. If it does not exist, Create makes it, empty and with mode 0600.
	Create(name string) (File, error)

	// Rename changes a file's name within its directory, and replaces a file that has the new name.
	Rename(from, to string) error

	// Remove removes a file's name. Open files stay readable.
	Remove(name string) error

	// SyncDir makes the names in a directory durable.
	SyncDir(name string) error

	// Lock locks the directory until the Dir is closed or the process dies, or returns ErrLocked.
	Lock(dir string) (Dir, error)
}

// Dir is an open directory, which can be synced without another descriptor.
type Dir interface {
	io.Closer

	// Sync makes the names in the directory durable.
	Sync() error
}

// File is an open file of an FS. Sync may run concurrently with WriteAt and Allocate; it covers what was written before it
// began.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer

	Size() (int64, error)
	// Truncate sets the size, and frees what Allocate reserved after it.
	Truncate(size int64) error

	// Allocate reserves disk blocks for length bytes from off on, so that writing them cannot fail because the disk is
	// full. It does not change the size. The error wraps errors.ErrUnsupported if the file system cannot do this.
	Allocate(off, length int64) error

	Sync() error
}
