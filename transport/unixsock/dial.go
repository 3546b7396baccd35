package unixsock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/schema/fault"
)

// Errors of Dial after which a client may start a daemon (BRIDGE 4.5.2). Any other error, such as a fault.PlaceUnsafe
// or a fault.AuthPeer, would stop a daemon too.
var (
	// ErrNoSocket means that the socket, or the runtime directory, does not exist.
	ErrNoSocket = errors.New("there is no socket: no daemon is running")
	// ErrNotListening means that the socket's daemon has ended.
	ErrNotListening = errors.New("the daemon has ended")
)

// Dial connects to the daemon at the socket path. The directory must pass CheckPrivateDir, or be writable by root only,
// and the listening process must be the user's or root's. Dial sends and reads nothing; access.ClientPrologue comes
// next. While the daemon's queue is full it waits, until ctx ends.
func Dial(ctx context.Context, path string) (*net.UnixConn, error) {
	if err := CheckSocketPath(path); err != nil {
		return nil, err
	}
	switch err := CheckPrivateDir(filepath.Dir(path)); {
	case errors.Is(err, fault.PlaceUnsafe) && rootsAlone(filepath.Dir(path)): // the directory of root's kernel, for an agent that runs as another user
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("dial %s: %w", path, ErrNoSocket)
	case err != nil:
		return nil, fmt.Errorf("dial: %w", err)
	}
	conn, err := connectToSocket(ctx, path)
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
		if _, bounded := ctx.Deadline(); bounded {
			<-ctx.Done() // the deadline of the connection was that of ctx
			return nil, fmt.Errorf("dial %s: %w", path, context.Cause(ctx))
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("dial %s: %w", path, ErrNoSocket)
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("dial %s: %w", path, ErrNotListening)
	case err != nil:
		return nil, fmt.Errorf("dial: %w", err)
	}
	if _, err := PeerOf(conn); err != nil {
		return nil, errors.Join(fmt.Errorf("dial %s: %w", path, err), conn.Close())
	}
	return conn, nil
}

// rootsAlone reports whether a directory belongs to root and only root may write it.
func rootsAlone(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir() && ownerOf(info) == 0 && os.Geteuid() != 0 && info.Mode().Perm()&0o022 == 0
}

// connectToSocket checks the file before it connects, as probe does. A socket of root in a private directory is one
// that a service manager bound.
func connectToSocket(ctx context.Context, path string) (*net.UnixConn, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if problem := socketProblem(info, 0); problem != "" {
		return nil, fault.Unsafe(path, problem, "move it out of the way, or set PWOS_RUNTIME_DIR to another directory")
	}
	return connect(ctx, path)
}

// Pair returns two connected sockets.
func Pair() (a, b *net.UnixConn, err error) {
	// No process may be forked before the sockets are marked close-on-exec, which is not one step on every system.
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

// unixConn returns a connection that takes over a socket's descriptor.
func unixConn(fd int) (*net.UnixConn, error) {
	file := os.NewFile(uintptr(fd), "socket")
	conn, err := net.FileConn(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	return conn.(*net.UnixConn), nil
}

// connectPause is the pause between two attempts to connect to a listener with a full queue.
const connectPause = 5 * time.Millisecond

// bsdAttempts is the number of attempts on systems that refuse a connection both without a listener and if its queue is
// full. Linux distinguishes the two (ECONNREFUSED, EAGAIN).
const bsdAttempts = 4

// connect dials the socket at path. While the listener's queue is full it waits, until ctx ends.
func connect(ctx context.Context, path string) (*net.UnixConn, error) {
	var dialer net.Dialer
	for attempt := 1; ; attempt++ { // no event reports that the queue has room
		conn, err := dialer.DialContext(ctx, "unix", path)
		if err == nil {
			return conn.(*net.UnixConn), nil // "unix" gives no other
		}
		full := errors.Is(err, syscall.EAGAIN) ||
			errors.Is(err, syscall.ECONNREFUSED) && runtime.GOOS != "linux" && attempt < bsdAttempts
		if !full {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), err)
		case <-time.After(connectPause):
		}
	}
}
