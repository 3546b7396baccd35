package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long drive waits for an answer before it checks the context again, in milliseconds.
const patience = 100

// drive runs w on every connection until the given time, and returns a driver with the results of each. It takes ownership
// of the connections.
//
// One thread serves all of them, as in redis-benchmark, since a goroutine for each would use as much processor time as a
// server.
func drive(ctx context.Context, conns []net.Conn, w Workload, newCheck func() check, until time.Time) (drivers []*driver, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ready, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make event loop: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Close(ready)) }()
	for i, conn := range conns {
		s, err := takeOver(ctx, conn)
		if err != nil {
			return nil, fmt.Errorf("take over connection: %w", err)
		}
		defer s.close()
		if err := unix.EpollCtl(ready, unix.EPOLL_CTL_ADD, s.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}); err != nil {
			return nil, fmt.Errorf("watch connection: %w", err)
		}
		drivers = append(drivers, newDriver(s, w, newCheck()))
	}
	for _, d := range drivers {
		if d.begin(); d.err != nil {
			return nil, d.err
		}
	}
	due := len(drivers)
	for events := make([]unix.EpollEvent, due); due > 0 && ctx.Err() == nil; {
		n, err := unix.EpollWait(ready, events, patience)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return nil, fmt.Errorf("wait for answers: %w", err)
		}
		for _, e := range events[:max(n, 0)] {
			d := drivers[e.Fd]
			if !d.due() {
				return nil, errors.New("a connection ended, or sent more than it was asked for")
			}
			if d.step(until); d.err != nil {
				return nil, d.err
			}
			if !d.due() {
				due--
			}
		}
	}
	return drivers, nil
}

// socket is a connection outside of the runtime's event loop, which each answer would wake.
type socket struct {
	ctx context.Context // of wait
	fd  int
}

func takeOver(ctx context.Context, conn net.Conn) (*socket, error) {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return nil, err
	}
	s := &socket{ctx: ctx}
	controlErr := raw.Control(func(fd uintptr) { s.fd, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	if err := errors.Join(controlErr, err); err != nil {
		return nil, err
	}
	if err := conn.Close(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *socket) close() { _ = unix.Close(s.fd) } // every answer has been read

// Read returns the bytes that have arrived, and waits if there are none.
func (s *socket) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(s.fd, p)
		switch {
		case err == nil && n == 0:
			return 0, io.EOF
		case err == nil:
			return n, nil
		}
		if err := s.wait(err, unix.POLLIN); err != nil {
			return 0, err
		}
	}
}

// Write waits while the socket is full.
func (s *socket) Write(p []byte) (written int, err error) {
	for written < len(p) {
		n, err := unix.Write(s.fd, p[written:])
		if err == nil {
			written += n
		} else if err := s.wait(err, unix.POLLOUT); err != nil {
			return written, err
		}
	}
	return written, nil
}

// wait waits until the operation that failed with err can be tried again; it returns an error if it cannot.
func (s *socket) wait(err error, what int16) error {
	for errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		if s.ctx.Err() != nil {
			return context.Cause(s.ctx)
		}
		n, pollErr := unix.Poll([]unix.PollFd{{Fd: int32(s.fd), Events: what}}, patience)
		if n > 0 {
			return nil
		}
		if pollErr != nil {
			err = pollErr
		}
	}
	return err
}
