package unixsock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
)

// Listener is one listening socket. It unlinks its path when it is closed, if it put it there.
type Listener struct {
	path  string
	close func() error

	mu     sync.Mutex
	ln     *net.UnixListener // replaced when Repair has bound again
	file   fs.FileInfo       // what we put at path; nil if we put nothing there
	closed bool
}

// Listen binds the socket paths and listens on them, mode 0600 (PROTOCOL 1, BRIDGE 4.5.3). All lie in the directory of
// lock, which the caller holds until every Listener is closed. Every path is probed before any is touched: stale sockets
// are replaced; where one is Alive or Foreign nothing is changed and a fault.PlaceServed or fault.PlaceOccupied returned.
//
// Each socket is bound under a hidden name in the same private directory, then linked into place. So a socket that can
// be found at its path listens already, nobody else could ever open it, and nothing that appears at the path meanwhile
// is overwritten.
func Listen(ctx context.Context, lock *Lock, paths ...string) ([]*Listener, error) {
	dir := filepath.Dir(lock.Path())
	for _, path := range paths {
		if err := CheckSocketPath(path); err != nil {
			return nil, err
		}
		if filepath.Dir(path) != dir {
			return nil, fmt.Errorf("listen on %s: the lock %s does not guard its directory", path, lock.Path())
		}
	}
	found := make([]finding, len(paths))
	for i, path := range paths {
		f, err := probe(ctx, path)
		if err := errors.Join(err, f.err); err != nil {
			return nil, err
		}
		found[i] = f
	}
	var all []*Listener
	for i, path := range paths {
		l, err := listenAt(ctx, lock, path, found[i])
		if err != nil {
			for _, l := range all {
				err = errors.Join(err, l.Close())
			}
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// Inherited returns a Listener for a socket that a service manager bound. The path is the manager's, so it is never
// unlinked.
func Inherited(ln *net.UnixListener) *Listener {
	ln.SetUnlinkOnClose(false)
	return newListener(ln, ln.Addr().String(), nil)
}

// newListener wraps ln; file is what was put at path, nil for nothing.
func newListener(ln *net.UnixListener, path string, file fs.FileInfo) *Listener {
	l := &Listener{ln: ln, path: path, file: file}
	l.close = sync.OnceValue(func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.closed = true
		// Unlinked while it still listens, so its inode number cannot belong to another file yet.
		err := l.unlink()
		return errors.Join(err, l.ln.Close())
	})
	return l
}

// Accept waits for the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		ln := l.current()
		conn, err := ln.Accept()
		if err != nil && l.current() != ln { // Repair has closed it, and there is another
			continue
		}
		return conn, err
	}
}

func (l *Listener) current() *net.UnixListener {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ln
}

// Addr returns the path that clients dial.
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

// Close unlinks the path, if the file there is ours, and stops listening. Connections that were not
// accepted see an end of input before any prologue, which tells a client that none of its calls
// ran. Further calls return the first's result.
func (l *Listener) Close() error { return l.close() }

// unlink takes away what bind put at the path. The caller holds mu.
func (l *Listener) unlink() error {
	if l.file == nil {
		return nil
	}
	if err := removeSame(l.path, l.file); err != nil {
		return fmt.Errorf("unlink socket: %w", err)
	}
	return nil
}

// removeSame removes path if the file there is still the one that info describes. It cannot be
// replaced in between: Listen replaces it under the lock, and a path at which a Listener still
// listens is left alone by every other Listen.
func removeSame(path string, info fs.FileInfo) error {
	there, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(there, info) {
		return nil
	}
	if err == nil {
		err = os.Remove(path)
	}
	return err
}
