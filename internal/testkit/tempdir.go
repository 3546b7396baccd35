package testkit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/promptware-os/pwos/internal/lockfile"
)

// tempPrefix begins the names of directories for temporary files. It is short for the sake of the sockets in them.
const tempPrefix = "pwt"

// onDisk is the directory of temporary files before Main sets TMPDIR.
var onDisk = os.TempDir()

// DiskTempDir returns the directory of temporary files on the disk, for tests that a file system in memory would fail. os.TempDir is
// another one if Main has moved temporary files into memory.
func DiskTempDir() string { return onDisk }

// saveWork sets TMPDIR to a directory in memory, if the system has room for it, and GOGC to 400, for this process and those that it
// starts. Variables that are set already are kept. Runs with the race detector or PWOS_LONG keep the disk and the usual GOGC, since they
// test what happens on a disk, and need more memory. cleanUp removes the files.
func saveWork() (cleanUp func() error, err error) {
	cleanUp = func() error { return nil }
	if RaceDetector() || os.Getenv("PWOS_LONG") != "" {
		return cleanUp, nil
	}
	if os.Getenv("GOGC") == "" {
		if own := debug.SetGCPercent(400); own > 400 { // a package has asked for more
			debug.SetGCPercent(own)
		}
		err = os.Setenv("GOGC", "400")
	}
	if dir := memoryDir(); err == nil && dir != "" && os.Getenv("TMPDIR") == "" {
		cleanUp, err = setTempDir(dir)
	}
	return cleanUp, err
}

// setTempDir sets TMPDIR to a new directory in parent, and locks it. It also removes directories of killed tests, which nothing locks.
// cleanUp removes the new one, and returns an error if a file was left in it.
func setTempDir(parent string) (cleanUp func() error, err error) {
	// One process at a time, so that none removes a directory that another has made and not locked yet.
	turn, err := os.Open(parent)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if err := lockfile.Wait(ctx, turn); err != nil {
		return nil, errors.Join(err, turn.Close())
	}
	defer func() { err = errors.Join(err, lockfile.Release(turn)) }()

	if err := removeAbandoned(parent); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(parent, tempPrefix)
	if err != nil {
		return nil, err
	}
	lock, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(lockfile.Try(lock), os.Chmod(dir, 0o711), os.Setenv("TMPDIR", dir)); err != nil { // programs of other users too
		return nil, errors.Join(err, lock.Close())
	}
	return func() error {
		left, err := filepath.Glob(filepath.Join(dir, "*"))
		if len(left) > 0 {
			err = fmt.Errorf("temporary files are left: %s", left)
		}
		return errors.Join(err, os.RemoveAll(dir), lockfile.Release(lock))
	}, nil
}

// removeAbandoned removes the directories in parent that are not locked, except those of other users.
func removeAbandoned(parent string) error {
	dirs, err := filepath.Glob(filepath.Join(parent, tempPrefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		lock, err := os.Open(dir)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err != nil {
			return err
		}
		if err := lockfile.Try(lock); errors.Is(err, lockfile.ErrHeld) {
			_ = lock.Close()
			continue
		}
		err = errors.Join(os.RemoveAll(dir), lockfile.Release(lock))
		if err != nil {
			return err
		}
	}
	return nil
}
