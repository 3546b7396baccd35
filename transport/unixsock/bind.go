package unixsock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// listenAt removes the stale socket at path, if f found one, and listens there.
func listenAt(ctx context.Context, lock *Lock, path string, f finding) (*Listener, error) {
	// Another daemon may have taken the lock during the probe.
	if err := lock.Verify(); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if f.state == Stale {
		if err := removeSame(path, f.info); err != nil {
			return nil, fmt.Errorf("remove stale socket: %w", err)
		}
	}
	return bind(ctx, path)
}

// bind listens on a new socket and publishes it at path. It returns an error that wraps fs.ErrExist if path exists.
func bind(ctx context.Context, path string) (*Listener, error) {
	hidden := filepath.Join(filepath.Dir(path), hiddenName())
	if err := CheckSocketPath(hidden); err != nil {
		return nil, err
	}
	config := net.ListenConfig{Control: restrict}
	generic, err := config.Listen(ctx, "unix", hidden)
	if err != nil {
		return nil, fmt.Errorf("bind socket: %w", err)
	}
	ln := generic.(*net.UnixListener) // network "unix" has no other type
	ln.SetUnlinkOnClose(false)        // it would unlink the path, also if it is another file

	info, err := publish(hidden, path, os.Link)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("publish socket: %w", err), ln.Close())
	}
	return newListener(ln, path, info), nil
}

// hiddenName returns a random name that is not longer than "kernel.sock", so that it does not exceed MaxSocketPath.
func hiddenName() string {
	return "." + strings.ToLower(rand.Text()[:8])
}

// restrict sets the mode that bind(2) gives the socket file. A umask would affect the whole process. Systems other than
// Linux refuse it (EINVAL); there only the private directory keeps others out, until publish sets the mode.
func restrict(_, _ string, raw syscall.RawConn) error {
	var modeErr error
	err := raw.Control(func(fd uintptr) { modeErr = unix.Fchmod(int(fd), 0o600) })
	if errors.Is(modeErr, unix.EINVAL) {
		modeErr = nil
	}
	return errors.Join(err, modeErr)
}

// publish renames the socket file hidden to path, and returns its FileInfo. It does not replace a file. link is
// os.Link.
func publish(hidden, path string, link func(from, to string) error) (fs.FileInfo, error) {
	err := os.Chmod(hidden, 0o600) // the umask may have removed bits
	var info fs.FileInfo
	if err == nil {
		info, err = os.Lstat(hidden)
	}
	if err == nil {
		err = link(hidden, path)
	}
	if err == nil || errors.Is(err, fs.ErrExist) {
		return info, errors.Join(err, os.Remove(hidden))
	}
	// Some file systems have no hard links to sockets. There the path is checked right before the rename.
	if _, statErr := os.Lstat(path); errors.Is(statErr, fs.ErrNotExist) {
		if err = os.Rename(hidden, path); err == nil {
			return info, nil
		}
	}
	return nil, errors.Join(err, os.Remove(hidden))
}
