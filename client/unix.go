package client

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// Places are the paths in the runtime directory of a kernel on this machine.
type Places = unixsock.Places

// RuntimeDir returns the runtime directory that the environment of this process names (PROTOCOL 1).
func RuntimeDir() string { return unixsock.RuntimeDir(os.Getenv, os.Getuid()) }

// places returns the paths of a kernel on this machine, none for another one.
func (o Options) places() Places {
	switch {
	case o.At != "":
		return Places{}
	case o.RuntimeDir == "":
		return unixsock.PlacesIn(RuntimeDir())
	}
	return unixsock.PlacesIn(o.RuntimeDir)
}

// socket is the route to a kernel on this machine: the path of its Unix socket.
type socket string

// String implements route.
func (s socket) String() string { return string(s) }

func (s socket) name() (string, error) { return access.SocketName(string(s)) }

func (s socket) dial(ctx context.Context) (*conn, error) {
	stream, err := unixsock.Dial(ctx, string(s))
	if err != nil {
		return nil, err
	}
	peer, err := unixsock.PeerOf(stream)
	if err != nil {
		return nil, errors.Join(err, stream.Close())
	}
	name, err := s.name()
	if err != nil {
		return nil, errors.Join(err, stream.Close())
	}
	return newConn(stream, peer.PID, access.Local{Socket: name, PID: os.Getpid(), UID: os.Geteuid()}), nil
}

// absent reports whether err means that no daemon runs, so that one may be started.
func absent(err error) bool {
	return errors.Is(err, unixsock.ErrNoSocket) || errors.Is(err, unixsock.ErrNotListening)
}

// spawnLock is the path of the lock that a client holds while it starts a daemon. The instance lock is the daemon's
// own.
func spawnLock(places Places) string { return filepath.Join(places.Dir, "spawn.lock") }

// KnownKernels returns the file of known kernels of this environment, next to the configuration. Its path is empty if
// there is no home directory.
func KnownKernels() access.KnownKernels {
	return access.KnownKernels{Path: besideConfig(unixsock.KnownKernels)}
}

// AuthorizedKeys returns the path of the keys that a kernel of this environment admits by default (PROTOCOL 1),
// empty if there is no home directory.
func AuthorizedKeys() string { return besideConfig(unixsock.AuthorizedKeys) }

// ConfigFile returns the path of the configuration of a kernel of this environment (PROTOCOL 1), empty if there is no
// home directory.
func ConfigFile() string { return besideConfig(func(config string) string { return config }) }

func besideConfig(place func(string) string) string {
	home, err := os.UserHomeDir()
	if err != nil && os.Getenv("PWOS_CONFIG") == "" && !filepath.IsAbs(os.Getenv("XDG_CONFIG_HOME")) {
		return ""
	}
	path, err := filepath.Abs(place(unixsock.ConfigFile(os.Getenv, home)))
	if err != nil { // the working directory was removed
		return ""
	}
	return path
}
