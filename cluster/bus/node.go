package bus

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// readyWait is how long a node may take to start listening.
const readyWait = 30 * time.Second

// Node is a running node of the bus.
type Node struct {
	server   *server.Server
	settings Settings
}

// Start starts a node, which runs until Close. It listens when Start returns.
func Start(s Settings, log *slog.Logger) (*Node, error) {
	o, err := s.Options()
	if err != nil {
		return nil, err
	}
	srv, err := server.NewServer(o)
	if err != nil {
		return nil, fmt.Errorf("make bus: %w", err)
	}
	log = log.With("component", "nats")
	srv.SetLoggerV2(logger{log}, false, false, false)
	srv.Start()
	n := &Node{srv, s}
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

// URL returns the address for clients.
func (n *Node) URL() string {
	scheme := "nats"
	if n.settings.Cert != "" {
		scheme = "tls"
	}
	return scheme + "://" + n.Addr().String()
}

// Addr returns the address that the node listens at.
func (n *Node) Addr() net.Addr { return n.server.Addr() }

// Reload applies another list of members. Members that stay keep their connections.
func (n *Node) Reload(s Settings) error {
	s.Listen = n.Addr().String() // the port that was chosen
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

// Close stops the node, and waits until it has stopped.
func (n *Node) Close() {
	n.server.Shutdown()
	n.server.WaitForShutdown()
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
