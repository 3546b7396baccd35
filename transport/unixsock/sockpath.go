package unixsock

import (
	"fmt"
	"syscall"
)

// MaxSocketPath is how many bytes of path fit into a socket address: 107 on Linux, 103 on macOS. One byte of the
// system's field is the terminating zero.
const MaxSocketPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// PathTooLongError refuses a socket path that the platform cannot hold (PROTOCOL 1).
type PathTooLongError struct{ Path string }

// Error names the path, its length, the limit and the way out.
func (e *PathTooLongError) Error() string {
	return fmt.Sprintf("socket path %s is %d bytes long, of at most %d: set PWOS_RUNTIME_DIR to a shorter directory",
		e.Path, len(e.Path), MaxSocketPath)
}

// CheckSocketPath returns a *PathTooLongError where path has more than MaxSocketPath bytes. Left to the system, the
// fault would read "invalid argument".
func CheckSocketPath(path string) error {
	if len(path) > MaxSocketPath {
		return &PathTooLongError{Path: path}
	}
	return nil
}
