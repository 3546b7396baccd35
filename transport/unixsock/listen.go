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

// Listener is a listening socket. Close unlinks its path, unless a service manager bound it.
type Listener struct {
	path  string
	close func() error

	mu     sync.Mutex
	ln     *net.UnixListener // replaced by Repair
	file   fs.FileInfo       // of the socket that was bound at path; nil for an inherited socket
	closed bool
}

// Listen binds the socket paths and listens on them, mode 0600 (PROTOCOL 1, BRIDGE 4.5.3). All must be in the directory
// of lock, which the caller holds until every Listener is closed. Listen probes every path before it changes any. It
// replaces stale sockets; if a path is Alive or Foreign, it changes nothing and returns a fault.PlaceServed or
// fault.PlaceOccupied. Each socket is bound to a hidden name in the same private directory, then linked to its path. A
// socket at its path thus listens already, was never accessible to other users, and does not replace a file.
func Listen(ctx context.Context, lock *Lock, paths ...string) ([]*Listener, error) {
	dir := filepath.Dir(lock.Path())
	for _, path := range paths {
		if err := CheckSocketPath(path); err != nil {
			return nil, err
		}
		if filepath.Dir(path) != dir {
			return nil, fmt.Errorf("listen on %s: the lock %s is in another directory", path, lock.Path())
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

// Inherited returns a Listener for a socket that a service manager bound. It never unlinks the path, which belongs to
// the manager.
func Inherited(ln *net.UnixListener) *Listener {
	ln.SetUnlinkOnClose(false)
	return newListener(ln, ln.Addr().String(), nil)
}

// newListener returns a Listener for ln. file describes the socket at path; nil for an inherited one.
func newListener(ln *net.UnixListener, path string, file fs.FileInfo) *Listener {
	l := &Listener{ln: ln, path: path, file: file}
	l.close = sync.OnceValue(func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.closed = true
		// While the socket listens, no other file can have its inode number.
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
		if err != nil && l.current() != ln { // Repair has replaced it
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

// Close unlinks the path if the file there is this Listener's, and stops listening. Connections that were not accepted
// are closed before any prologue, which tells a client that none of its calls ran. Further calls return the result of
// the first.
func (l *Listener) Close() error { return l.close() }

// unlink removes the socket that bind put at the path. The caller holds mu.
func (l *Listener) unlink() error {
	if l.file == nil {
		return nil
	}
	if err := removeSame(l.path, l.file); err != nil {
		return fmt.Errorf("unlink socket: %w", err)
	}
	return nil
}

// removeSame removes path if the file there is the one of info. It cannot be replaced in between: Listen replaces files
// only under the lock, and never a socket that listens.
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
