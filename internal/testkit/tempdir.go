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

// DiskTempDir returns the directory of temporary files on the disk, which os.TempDir is only where Main has not moved them into memory. It is
// for tests of what a file system in memory does otherwise.
func DiskTempDir() string { return onDisk }

// saveWork has this process, and those that it starts, spend less time on disks and on garbage collection in a plain run: temporary files
// are kept in memory where the system has room for that, and GOGC is 400. TMPDIR and GOGC take precedence. The race detector and PWOS_LONG
// change nothing: their runs show what happens on a disk, and need more memory anyway. cleanUp removes the files.
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

// setTempDir sets TMPDIR to a new directory in parent. It also removes those there that tests left when they were killed: a directory is
// locked while it is in use. cleanUp removes the new one, and fails if a file was left in it.
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

// removeAbandoned removes the directories in parent that nobody has locked, except those of other users.
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
