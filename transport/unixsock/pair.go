package unixsock

import (
	"errors"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Pair returns two sockets that are connected with each other.
func Pair() (a, b *net.UnixConn, err error) {
	// The lock keeps a fork from coming between making the pair and marking it close-on-exec, which not every system does in one step.
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	a, errA := unixConn(fds[0])
	b, errB := unixConn(fds[1])
	if err := errors.Join(errA, errB); err != nil {
		if a != nil {
			err = errors.Join(err, a.Close())
		}
		if b != nil {
			err = errors.Join(err, b.Close())
		}
		return nil, nil, err
	}
	return a, b, nil
}

// unixConn takes over a socket's descriptor.
func unixConn(fd int) (*net.UnixConn, error) {
	file := os.NewFile(uintptr(fd), "socket")
	conn, err := net.FileConn(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	return conn.(*net.UnixConn), nil
}
