package bus

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/promptware-os/pwos/internal/lockfile"
)

// readyWait is how long a node may take to start listening.
const readyWait = 30 * time.Second

// Node is a running node of the bus.
type Node struct {
	server   *server.Server
	maker    *maker
	settings Settings
	lock     *os.File // locks the directory
}

// Start starts a node, which runs until Close. It listens when Start returns. Start refuses a directory that another node uses, which
// the server does not check: each would overwrite what the other has acknowledged.
func Start(s Settings, log *slog.Logger) (*Node, error) {
	m, err := newMaker(log)
	if err != nil {
		return nil, err
	}
	o, err := s.optionsWith(m)
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
	n := &Node{srv, m, s, lock}
	if !srv.ReadyForConnections(readyWait) {
		n.Close()
		return nil, errors.New("start bus: it does not listen: its log says why")
	}
	if !srv.JetStreamEnabled() {
		n.Close()
		return nil, errors.New("start bus: it cannot use its directory: its log says why")
	}
	if err := m.start(srv); err != nil {
		n.Close()
		return nil, err
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

// optionsWith returns the server's options, with the maker as a user.
func (s Settings) optionsWith(m *maker) (*server.Options, error) {
	o, err := s.Options()
	if err == nil {
		o.Nkeys = append(o.Nkeys, &server.NkeyUser{Nkey: m.user})
	}
	return o, err
}

// URL is the address for clients.
func (n *Node) URL() string {
	scheme := "nats"
	if n.settings.Cert != "" {
		scheme = "tls"
	}
	return scheme + "://" + n.Addr().String()
}

// Addr returns the address that the node listens at.
func (n *Node) Addr() net.Addr { return n.server.Addr() }

// PeersAddr returns the address that the node listens at for other nodes; nil if it is the only one.
func (n *Node) PeersAddr() net.Addr {
	if at := n.server.ClusterAddr(); at != nil {
		return at
	}
	return nil
}

// Reload applies another list of members. Members that stay keep their connections.
func (n *Node) Reload(s Settings) error {
	s.Listen = n.Addr().String() // where a port was chosen
	o, err := s.optionsWith(n.maker)
	if err != nil {
		return err
	}
	if err := n.server.ReloadOptions(o); err != nil {
		return fmt.Errorf("reload bus: %w", err)
	}
	n.settings = s
	return nil
}

// Close stops the node, and waits until it has stopped.
func (n *Node) Close() {
	n.maker.close()
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
func (l logger) Warnf(format string, v ...any) {
	// The server says this of links whose certificates no authority vouches for. They are known by their keys.
	if !strings.HasPrefix(format, "TLS certificate chain and hostname of solicited routes will not be verified") {
		l.say(l.log.Warn, format, v)
	}
}
func (l logger) Fatalf(format string, v ...any) { l.say(l.log.Error, format, v) }
func (l logger) Errorf(format string, v ...any) { l.say(l.log.Error, format, v) }
func (l logger) Debugf(format string, v ...any) { l.say(l.log.Debug, format, v) }
func (l logger) Tracef(format string, v ...any) { l.say(l.log.Debug, format, v) }
