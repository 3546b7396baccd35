package confine

import (
	"errors"
	"net"
	"os"
	"slices"
)

// Sockets listen in the network of one program. Only that program can connect to them.
type Sockets struct {
	Proxy     net.Listener   // 127.0.0.1:ProxyPort
	DNS       net.PacketConn // 127.0.0.1:53
	DNSTCP    net.Listener   // 127.0.0.1:53
	Relay     []net.Listener // all addresses, on 80, 443 and the granted ports: a connection's LocalAddr is the destination
	Upstreams []net.Listener // 127.0.0.1, from UpstreamPort on
	Locals    []net.Listener // 127.0.0.1 and ::1, on the ports of Request.Locals
	Dialer    Dialer         // connects to the program's ports, if Request.Publishes
}

// Close closes all sockets.
func (s *Sockets) Close() error {
	var errs []error
	for _, l := range slices.Concat([]net.Listener{s.Proxy, s.DNSTCP}, s.Relay, s.Upstreams, s.Locals) {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	if s.DNS != nil {
		errs = append(errs, s.DNS.Close())
	}
	return errors.Join(append(errs, s.Dialer.Close())...)
}

// Handed is what a process hands over before it becomes the program.
type Handed struct {
	Share   *os.File // the directory of Request.Share; nil: there is none
	Sockets *Sockets // nil: the daemon does not serve the program's network
	// Terminal is the host's end of the program's terminal; nil: it has none of its own pseudo-terminals.
	Terminal *os.File
	// Mounts is the program's mount namespace, and User the user namespace that owns it, if that is not this process's, for Cover.
	Mounts, User *os.File
	// Calls are the program's calls of connect. nil: the program makes them itself.
	Calls *Calls
}

// Close closes everything.
func (h Handed) Close() error {
	var errs []error
	if h.Share != nil {
		errs = append(errs, h.Share.Close())
	}
	if h.Sockets != nil {
		errs = append(errs, h.Sockets.Close())
	}
	if h.Terminal != nil {
		errs = append(errs, h.Terminal.Close())
	}
	for _, file := range []*os.File{h.Mounts, h.User} {
		if file != nil {
			errs = append(errs, file.Close())
		}
	}
	if h.Calls != nil {
		errs = append(errs, h.Calls.Close())
	}
	return errors.Join(errs...)
}

// Accepted tells the waiting process that what it has handed over is served.
func Accepted(hand *net.UnixConn) error {
	_, err := hand.Write([]byte{'k'})
	return err
}
