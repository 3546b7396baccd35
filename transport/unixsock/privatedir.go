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

// EnsurePrivateDir makes the directory path, 0700, with those parents that are missing (BRIDGE 4.5.1). One that is there
// already has to pass CheckPrivateDir. Two processes may do this at once.
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

// CheckPrivateDir reports with a fault.PlaceUnsafe that path is a symbolic link, is no directory, is not ours, or is open to
// group or others; with an error that wraps fs.ErrNotExist that it is not there.
//
// It judges the very directory that it opened, not what the path may name a moment later. A directory that passes
// cannot be changed by another user but through a parent; who swaps it there wins nothing, since both ends of a
// connection check whose process the other end is (PeerOf).
func CheckPrivateDir(path string) error {
	if err := checkAbsolute(path); err != nil {
		return err
	}
	path = filepath.Clean(path) // a trailing slash would follow a symbolic link
	dir, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return explainUnopened(path, err)
	}
	info, err := dir.Stat()
	if err := errors.Join(err, dir.Close()); err != nil {
		return fmt.Errorf("inspect private directory: %w", err)
	}
	return judgeDir(path, info)
}

// judgeDir is the verdict on what stands at path.
func judgeDir(path string, info fs.FileInfo) error {
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

// explainUnopened says why path could not be opened as a directory. The refusal stands whatever it finds: looking again
// only serves to word it.
func explainUnopened(path string, openErr error) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("open private directory: %w", err)
	}
	if err := judgeDir(path, info); err != nil {
		return err
	}
	return fmt.Errorf("open private directory: %w", openErr)
}

// checkAbsolute refuses a path that means another place in each working directory, so that a daemon and its clients
// could miss each other.
func checkAbsolute(path string) error {
	if filepath.IsAbs(path) {
		return nil
	}
	return fault.Unsafe(path, "is not an absolute path", "write it from the root on")
}

// ownerOf returns the user whose file it is, -1 where the system does not say.
func ownerOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}
