package poll

import (
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// read reads once from fd, which does not block.
func read(fd int, p []byte) (int, error) {
	for {
		n, err := sysRead(fd, p)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			return 0, ErrAgain
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// write writes to fd as much of p as it accepts without blocking; full reports that this was not all.
func write(fd int, p []byte) (written int, full bool, err error) {
	for written < len(p) {
		n, err := sysWrite(fd, p[written:])
		switch err {
		case nil:
			written += n
		case unix.EINTR:
		case unix.EAGAIN:
			return written, true, nil
		default:
			return written, false, os.NewSyscallError("write", err)
		}
	}
	return written, false, nil
}

// shutdown ends the input of a socket.
func shutdown(fd int) error {
	if err := unix.Shutdown(fd, unix.SHUT_RD); err != nil && err != unix.ENOTCONN { // the peer has closed
		return os.NewSyscallError("shutdown", err)
	}
	return nil
}

// descriptors returns the numbers of s's two descriptors, which stay valid as long as s is open.
func descriptors(s Source) (in, out int, err error) {
	number := func(raw syscall.RawConn, fd *int) error {
		return raw.Control(func(n uintptr) { *fd = int(n) })
	}
	err = errors.Join(number(s.In, &in), number(s.Out, &out))
	return in, out, err
}
