package unixsock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/schema/fault"
)

// EnsurePrivateDir makes the directory path, 0700, with missing parents (BRIDGE 4.5.1). An existing one has to pass
// CheckPrivateDir. Concurrent calls, also of several processes, are safe.
func EnsurePrivateDir(path string) error {
	if err := checkAbsolute(path); err != nil {
		return err
	}
	path = filepath.Clean(path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make parent directories: %w", err)
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make private directory: %w", err)
	}
	return CheckPrivateDir(path)
}

// CheckPrivateDir returns a fault.PlaceUnsafe if path is a symbolic link, is not a directory, belongs to another user,
// or is open to group or others. It returns an error that wraps fs.ErrNotExist if path does not exist. It checks the
// directory that it has opened. Another user can replace that only in a parent directory, and gains nothing by it,
// since both ends of a connection check the user of the other end (PeerOf).
func CheckPrivateDir(path string) error {
	if err := checkAbsolute(path); err != nil {
		return err
	}
	path = filepath.Clean(path) // with a trailing slash, a symbolic link would be followed
	dir, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return explainUnopened(path, err)
	}
	info, err := dir.Stat()
	if err := errors.Join(err, dir.Close()); err != nil {
		return fmt.Errorf("inspect private directory: %w", err)
	}
	return checkDir(path, info)
}

// checkDir returns a fault.PlaceUnsafe if the file at path is not a private directory.
func checkDir(path string, info fs.FileInfo) error {
	mode := info.Mode()
	switch {
	case mode&fs.ModeSymlink != 0:
		return fault.Unsafe(path, "is a symbolic link", "remove the link, or name the directory itself")
	case !mode.IsDir():
		return fault.Unsafe(path, "is not a directory", "move it out of the way, or name another directory")
	case ownerOf(info) != os.Geteuid():
		return fault.Unsafe(
			path,
			fmt.Sprintf("belongs to user %d, not to user %d", ownerOf(info), os.Geteuid()), "name a directory of your own",
		)
	case mode.Perm()&0o077 != 0:
		return fault.Unsafe(
			path,
			fmt.Sprintf("is open to group or others (mode %04o)", mode.Perm()),
			"look at what is in it, then remove it or chmod it to 0700, or name another directory",
		)
	case mode.Perm() != 0o700:
		return fault.Unsafe(path, fmt.Sprintf("is closed to its owner (mode %04o)", mode.Perm()), "chmod it to 0700")
	}
	return nil
}

// explainUnopened returns the error for a path that could not be opened as a directory, with the reason if it finds
// one.
func explainUnopened(path string, openErr error) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("open private directory: %w", err)
	}
	if err := checkDir(path, info); err != nil {
		return err
	}
	return fmt.Errorf("open private directory: %w", openErr)
}

// checkAbsolute refuses a relative path, which could name different directories for a daemon and its clients.
func checkAbsolute(path string) error {
	if filepath.IsAbs(path) {
		return nil
	}
	return fault.Unsafe(path, "is not an absolute path", "write it from the root on")
}

// ownerOf returns the user that a file belongs to, -1 if the system does not report it.
func ownerOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}
