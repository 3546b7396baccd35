package dirwatch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The events of a directory, and of its parents.
const (
	within = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVE | above
	above  = unix.IN_DELETE_SELF | unix.IN_MOVE_SELF
)

// Open returns a file that becomes readable when a name in one of dirs, or in a parent of one, is created, removed or
// moved. A mount over one of them is not reported.
func Open(dirs []string) (*os.File, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	file := os.NewFile(uintptr(fd), "inotify")
	for _, dir := range dirs {
		for events := uint32(within); ; dir, events = filepath.Dir(dir), above {
			if _, err := unix.InotifyAddWatch(fd, dir, events|unix.IN_ONLYDIR|unix.IN_MASK_ADD); err != nil {
				return nil, errors.Join(fmt.Errorf("watch %s: %w", dir, err), file.Close())
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return file, nil
}
