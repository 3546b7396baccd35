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

// Why Dial failed. After either of the two a client may start a daemon (BRIDGE 4.5.2); any other error, such as a
// fault.PlaceUnsafe or a fault.AuthPeer, would stop a daemon too.
var (
	// ErrNoSocket: the socket, or the runtime directory itself, is not there.
	ErrNoSocket = errors.New("no daemon has been here")
	// ErrNobodyListens means that the socket's daemon has ended.
	ErrNobodyListens = errors.New("the daemon has ended")
)

// Dial connects to the daemon at the socket path. It trusts nothing: the directory must pass
// CheckPrivateDir, or be writable by root only, and the listening process must be ours or root's.
// It sends and reads nothing; ClientPrologue comes next. While the daemon's queue is full it waits,
// until ctx ends.
func Dial(ctx context.Context, path string) (*net.UnixConn, error) {
	if err := CheckSocketPath(path); err != nil {
		return nil, err
	}
	switch err := CheckPrivateDir(filepath.Dir(path)); {
	case errors.Is(err, fault.PlaceUnsafe) && rootsAlone(filepath.Dir(path)): // as agents see it that run as another user than root's kernel
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("dial %s: %w", path, ErrNoSocket)
	case err != nil:
		return nil, fmt.Errorf("dial: %w", err)
	}
	conn, err := connectToSocket(ctx, path)
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
		if _, bounded := ctx.Deadline(); bounded {
			<-ctx.Done() // it was that deadline, which the connection has noticed first
			return nil, fmt.Errorf("dial %s: %w", path, context.Cause(ctx))
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("dial %s: %w", path, ErrNoSocket)
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("dial %s: %w", path, ErrNobodyListens)
	case err != nil:
		return nil, fmt.Errorf("dial: %w", err)
	}
	if _, err := PeerOf(conn); err != nil {
		return nil, errors.Join(fmt.Errorf("dial %s: %w", path, err), conn.Close())
	}
	return conn, nil
}

// rootsAlone reports whether a directory is root's and only root may write it.
func rootsAlone(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir() && ownerOf(info) == 0 && os.Geteuid() != 0 && info.Mode().Perm()&0o022 == 0
}

// connectToSocket looks before it connects, as probe does. In a private directory a socket of root's is one that a
// service manager put there for us.
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

// connectPause is the pause between two attempts to connect to a listener with a full queue.
const connectPause = 5 * time.Millisecond

// bsdAttempts is how often a refused connect is tried on systems that refuse both for a full queue
// and without a listener. Linux distinguishes the two (ECONNREFUSED, EAGAIN).
const bsdAttempts = 4

// connect dials the socket at path and waits, until ctx ends, for as long as the listener's queue is full.
func connect(ctx context.Context, path string) (*net.UnixConn, error) {
	var dialer net.Dialer
	for attempt := 1; ; attempt++ { // the queue empties as the daemon accepts; nothing tells when
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
