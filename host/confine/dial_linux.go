package confine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Dialer connects to ports of a program's network, in which it has a listener and an unconnected socket for each address
// of localhost.
//
// A socket belongs to the network of the process that makes it, and no process of the daemon is in a program's. But what a
// listener accepts belongs to the listener's network: a connection between these two sockets that is dissolved
// again (connect to AF_UNSPEC) leaves a new socket there.
type Dialer struct {
	mu    sync.Mutex
	ends  []*os.File // listener and socket, for each address
	ended bool
}

// take stores a socket by the order of Plan.inside.
func (d *Dialer) take(f *os.File) error {
	d.ends = append(d.ends, f)
	return nil
}

// Close closes the sockets. Connections stay.
func (d *Dialer) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	if !d.ended {
		for _, f := range d.ends {
			errs = append(errs, f.Close())
		}
	}
	d.ended = true
	return errors.Join(errs...)
}

// dialTime bounds Dial, which takes no time unless the program's accept queue is full.
const dialTime = 10 * time.Second

// Dial connects to a port of localhost in the program's network: to the first of its addresses where something listens.
func (d *Dialer) Dial(ctx context.Context, port uint16) (net.Conn, error) {
	until := time.Now().Add(dialTime)
	if given, ok := ctx.Deadline(); ok && given.Before(until) {
		until = given
	}
	err := error(unix.ECONNREFUSED)
	for i := 0; i+1 < len(d.ends) && errors.Is(err, unix.ECONNREFUSED); i += 2 {
		var conn net.Conn
		if conn, err = d.open(i, port, until); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// open connects to a port of the address of one pair of ends.
func (d *Dialer) open(pair int, port uint16, until time.Time) (net.Conn, error) {
	f, err := d.mint(d.ends[pair], d.ends[pair+1], until)
	if err != nil {
		return nil, fmt.Errorf("make socket in the program's network: %w", err)
	}
	defer f.Close() // the connection has a copy
	if err := reach(f, loopbackAt(pair, port), until); err != nil {
		return nil, err
	}
	return net.FileConn(f)
}

func loopbackAt(pair int, port uint16) unix.Sockaddr {
	if pair > 0 {
		return &unix.SockaddrInet6{Port: int(port), Addr: netip.IPv6Loopback().As16()}
	}
	return &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}}
}

// mint makes an unconnected socket in the network of a listener and a socket. The program may connect to the listener too:
// those connections are closed.
func (d *Dialer) mint(listener, end *os.File, until time.Time) (*os.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return nil, net.ErrClosed
	}
	at, err := nameOf(listener)
	if err != nil {
		return nil, err
	}
	if err := reach(end, at, until); err != nil {
		return nil, err
	}
	own, err := nameOf(end)
	if err != nil {
		return nil, err
	}
	for {
		f, from, err := accept(listener, until)
		if err != nil {
			return nil, errors.Join(err, dissolve(end))
		}
		if portOf(from) == portOf(own) {
			if err := errors.Join(dissolve(end), dissolve(f)); err != nil {
				return nil, errors.Join(err, f.Close())
			}
			return f, nil
		}
		_ = f.Close() // the program's
	}
}

// reach connects a socket.
func reach(f *os.File, to unix.Sockaddr, until time.Time) error {
	begun := false
	return await(f, until, syscall.RawConn.Write, func(fd int) (done bool, err error) {
		if !begun {
			begun = true
			err := unix.Connect(fd, to)
			return !errors.Is(err, unix.EINPROGRESS), err
		}
		n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
		if err != nil || n != 0 {
			return true, cmp.Or(err, error(unix.Errno(n)))
		}
		_, err = unix.Getpeername(fd)
		return !errors.Is(err, unix.ENOTCONN), err
	})
}

// accept accepts a connection.
func accept(listener *os.File, until time.Time) (f *os.File, from unix.Sockaddr, err error) {
	err = await(listener, until, syscall.RawConn.Read, func(fd int) (bool, error) {
		conn, address, err := unix.Accept4(fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil {
			return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.ECONNABORTED), err
		}
		f, from = os.NewFile(uintptr(conn), "socket of a program's network"), address
		return true, nil
	})
	return f, from, err
}

// dissolve ends a connection, so that its socket can make another.
func dissolve(f *os.File) error {
	return await(f, time.Time{}, syscall.RawConn.Write, func(fd int) (bool, error) {
		none := make([]byte, unix.SizeofSockaddrInet4) // of AF_UNSPEC
		if errno := connect(fd, none); errno != 0 {
			return true, errno
		}
		return true, nil
	})
}

// nameOf returns the address of a socket.
func nameOf(f *os.File) (at unix.Sockaddr, err error) {
	err = await(f, time.Time{}, syscall.RawConn.Write, func(fd int) (bool, error) {
		at, err = unix.Getsockname(fd)
		return true, err
	})
	return at, err
}

func portOf(at unix.Sockaddr) int {
	switch at := at.(type) {
	case *unix.SockaddrInet4:
		return at.Port
	case *unix.SockaddrInet6:
		return at.Port
	}
	return -1
}

// await calls do with the descriptor of a file until it is done, and waits in between, by RawConn.Read or Write.
func await(f *os.File, until time.Time, wait func(syscall.RawConn, func(uintptr) bool) error, do func(fd int) (done bool, err error)) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	if err := f.SetDeadline(until); err != nil {
		return err
	}
	var failed error
	err = wait(raw, func(fd uintptr) (done bool) {
		done, failed = do(int(fd))
		return done
	})
	return cmp.Or(err, failed)
}
