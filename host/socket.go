package host

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// socket is the channel over descriptor 3.
type socket struct {
	*os.File
	shut func() error
}

// socketPair returns the kernel's end of a connected pair of stream sockets, and the program's.
func socketPair() (Conn, *os.File, error) {
	// The lock prevents a fork between creating the pair and marking it close-on-exec, which not every system does in one
	// step.
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
	// Only the kernel's end is non-blocking: the ends are separate descriptions, and the program expects its own to block.
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, nil, errors.Join(os.NewSyscallError("fcntl", err), unix.Close(fds[0]), unix.Close(fds[1]))
	}
	s := &socket{File: os.NewFile(uintptr(fds[0]), "channel")}
	s.shut = sync.OnceValue(s.shutdown)
	return s, os.NewFile(uintptr(fds[1]), "channel"), nil
}

// RawConns implements Conn.
func (s *socket) RawConns() (in, out syscall.RawConn, err error) {
	raw, err := s.SyscallConn()
	return raw, raw, err
}

// CloseWrite implements Conn.
func (s *socket) CloseWrite() error { return s.shut() }

// Close implements Conn. It may be called twice.
func (s *socket) Close() error {
	if err := s.File.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

func (s *socket) shutdown() error {
	raw, err := s.SyscallConn()
	if err != nil {
		return fmt.Errorf("end channel: %w", err)
	}
	var shutErr error
	if err := raw.Control(func(fd uintptr) { shutErr = unix.Shutdown(int(fd), unix.SHUT_WR) }); err != nil {
		return fmt.Errorf("end channel: %w", err)
	}
	if shutErr != nil && !errors.Is(shutErr, unix.ENOTCONN) { // the program has closed its end, so there is nothing to shut down
		return fmt.Errorf("end channel: %w", os.NewSyscallError("shutdown", shutErr))
	}
	return nil
}
