package bus

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/promptware-os/pwos/internal/lockfile"
)

// readyWait is how long a node may take to listen.
const readyWait = 30 * time.Second

// Node is a running node of the bus.
type Node struct {
	server   *server.Server
	settings Settings
	lock     *os.File // of the directory
}

// Start runs a node until Close. It listens when Start returns. The server does not notice another one in its
// directory, and each would write over what the other one has acknowledged: Start refuses a directory in use.
func Start(s Settings, log *slog.Logger) (*Node, error) {
	o, err := s.Options()
	if err != nil {
		return nil, err
	}
	lock, err := lockDir(s.Dir)
	if err != nil {
		return nil, err
	}
	srv, err := server.NewServer(o)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make bus: %w", err), lockfile.Release(lock))
	}
	log = log.With("component", "nats")
	srv.SetLoggerV2(logger{log}, false, false, false)
	srv.Start()
	n := &Node{srv, s, lock}
	if !srv.ReadyForConnections(readyWait) {
		n.Close()
		return nil, errors.New("start bus: it does not listen: its log says why")
	}
	if !srv.JetStreamEnabled() {
		n.Close()
		return nil, errors.New("start bus: it cannot use its directory: its log says why")
	}
	return n, nil
}

// lockDir locks the directory of a node.
func lockDir(dir string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock directory: %w", err)
	}
	switch err = lockfile.Take(lock); {
	case errors.Is(err, lockfile.ErrHeld):
		err = fmt.Errorf("another bus uses the directory %s: end that one, or name another directory", dir)
	case err == nil:
		return lock, nil
	}
	return nil, errors.Join(err, lock.Close())
}

// URL is the address for clients.
func (n *Node) URL() string {
	scheme := "nats"
	if n.settings.Cert != "" {
		scheme = "tls"
	}
	return scheme + "://" + n.Addr().String()
}

// Addr is where the node listens.
func (n *Node) Addr() net.Addr { return n.server.Addr() }

// Reload takes another list of members, without disconnecting those that stay as they are.
func (n *Node) Reload(s Settings) error {
	s.Listen = n.Addr().String() // where a port was chosen
	o, err := s.Options()
	if err != nil {
		return err
	}
	if err := n.server.ReloadOptions(o); err != nil {
		return fmt.Errorf("reload bus: %w", err)
	}
	n.settings = s
	return nil
}

// Close ends the node, and returns when it has ended.
func (n *Node) Close() {
	n.server.Shutdown()
	n.server.WaitForShutdown()
	_ = lockfile.Release(n.lock) // nothing was written
}

// logger is the log of the server.
type logger struct{ log *slog.Logger }

func (l logger) say(level func(string, ...any), format string, v []any) {
	level(fmt.Sprintf(format, v...))
}

func (l logger) Noticef(format string, v ...any) { l.say(l.log.Debug, format, v) }
func (l logger) Warnf(format string, v ...any)   { l.say(l.log.Warn, format, v) }
func (l logger) Fatalf(format string, v ...any)  { l.say(l.log.Error, format, v) }
func (l logger) Errorf(format string, v ...any)  { l.say(l.log.Error, format, v) }
func (l logger) Debugf(format string, v ...any)  { l.say(l.log.Debug, format, v) }
func (l logger) Tracef(format string, v ...any)  { l.say(l.log.Debug, format, v) }
