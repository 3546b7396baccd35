package confine

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Listens reports whether Enter sends sockets.
func (p *Plan) Listens() bool { return p.network() && p.Net == NetKernel }

// Receive receives what Enter sends. It returns unix.EPIPE if the sending process ended first.
func (p *Plan) Receive(hand *net.UnixConn) (*Sockets, error) {
	const room = 253 // capacity of one message
	word, control := make([]byte, 1), make([]byte, unix.CmsgSpace(4*room))
	n, m, _, _, err := hand.ReadMsgUnix(word, control)
	if err != nil || n == 0 {
		return nil, errors.Join(unix.EPIPE, err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:m])
	if err != nil || len(messages) != 1 {
		return nil, fmt.Errorf("take sockets: %w", errors.Join(unix.EPROTO, err))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, fmt.Errorf("take sockets: %w", err)
	}
	s := &Sockets{}
	for i, fd := range fds {
		err = errors.Join(err, s.take(i, p.Upstreams, fd))
	}
	if err == nil && len(fds) != len(p.addresses()) {
		err = unix.EPROTO
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("take sockets: %w", err), s.Close())
	}
	return s, nil
}

// take stores a socket by its index in addresses.
func (s *Sockets) take(index, upstreams, fd int) error {
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close() // the listener has a copy
	if index == datagram {
		conn, err := net.FilePacketConn(f)
		s.DNS = conn
		return err
	}
	l, err := net.FileListener(f)
	if err != nil {
		return err
	}
	const first = 3 // of the upstreams
	switch {
	case index == 0:
		s.Proxy = l
	case index < first:
		s.DNSTCP = l
	case index < first+upstreams:
		s.Upstreams = append(s.Upstreams, l)
	default:
		s.Relay = append(s.Relay, l)
	}
	return nil
}
