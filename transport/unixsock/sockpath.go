package unixsock

import (
	"syscall"

	"github.com/promptware-os/pwos/schema/fault"
)

// MaxSocketPath is how many bytes of path fit into a socket address: 107 on Linux, 103 on macOS. One byte of the
// system's field is the terminating zero.
const MaxSocketPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// CheckSocketPath returns a fault.PlacePathTooLong where path has more than MaxSocketPath bytes. Left to the system, the
// error would read "invalid argument".
func CheckSocketPath(path string) error {
	if len(path) > MaxSocketPath {
		return fault.PlacePathTooLong.New("socket path %s is %d bytes long, of at most %d", path, len(path), MaxSocketPath).
			WithFix("set PWOS_RUNTIME_DIR to a shorter directory").With("path", path)
	}
	return nil
}
