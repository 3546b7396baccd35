package host

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// shimFile is the program that starts those of agents, as it was when the host was opened: a later one that takes its place may expect
// other orders.
type shimFile struct{ fd int }

// lowestFD is above the descriptors that any program of an agent starts with: a fork puts those in their places first.
const lowestFD = 64

func openShim(path string) (*shimFile, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.OpenFile(path, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("shim: %w", err)
	}
	defer closeFile(file)
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, lowestFD)
	if err != nil {
		return nil, fmt.Errorf("shim: %w", err)
	}
	return &shimFile{fd}, nil
}

// path returns the path for a fork; "" if this program is the shim.
func (s *shimFile) path() string {
	if s == nil {
		return ""
	}
	return "/proc/self/fd/" + strconv.Itoa(s.fd)
}

// raise returns a copy of a descriptor with a number above that of the shim. If it is one of those that a program is started with, the system
// package uses numbers above it in the child, where it would otherwise replace the shim's own if that is the next one.
func (s *shimFile) raise(fd uintptr) (raised uintptr, lower func(), err error) {
	if s == nil {
		return fd, func() {}, nil
	}
	n, err := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, s.fd+1)
	if err != nil {
		return 0, nil, fmt.Errorf("shim: %w", err)
	}
	return uintptr(n), func() { _ = unix.Close(n) }, nil // it is a copy
}

func (s *shimFile) close() {
	if s != nil {
		_ = unix.Close(s.fd) // it was opened for its path only
	}
}
