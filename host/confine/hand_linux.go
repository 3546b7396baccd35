package confine

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Listens reports whether the daemon serves the program's network.
func (p *Plan) Listens() bool { return p.network() && p.Net == NetKernel }

// Hands reports whether the process that carries out the plan calls HandOver.
func (p *Plan) Hands() bool {
	return p.Listens() || p.shares() || p.holds() || p.notifies() || p.Terminal
}

func (p *Plan) shares() bool {
	return slices.ContainsFunc(p.layers, func(l layer) bool { return l.kind == sized })
}

// HandOver sends what Enter has opened for the daemon over the socket with descriptor to, and returns when the daemon has
// called Accepted.
func (p *Plan) HandOver(to int) error {
	if err := unix.Sendmsg(to, []byte{'s'}, unix.UnixRights(p.hand...), nil, 0); err != nil {
		return fmt.Errorf("hand descriptors over: %w", err)
	}
	for _, fd := range p.hand {
		closeFD(fd)
	}
	word := make([]byte, 1)
	if n, err := unix.Read(to, word); err != nil || n != 1 {
		return fmt.Errorf("hand descriptors over: the daemon refused: %w", unix.EPIPE)
	}
	return nil
}

// Receive receives what HandOver sends. It returns unix.EPIPE if the sending process ended first.
func (p *Plan) Receive(hand *net.UnixConn) (h Handed, err error) {
	const room = 253 // capacity of one message
	word, control := make([]byte, 1), make([]byte, unix.CmsgSpace(4*room))
	n, m, _, _, err := hand.ReadMsgUnix(word, control)
	if err != nil || n == 0 {
		return h, errors.Join(unix.EPIPE, err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:m])
	if err != nil || len(messages) != 1 {
		return h, fmt.Errorf("take descriptors: %w", errors.Join(unix.EPROTO, err))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return h, fmt.Errorf("take descriptors: %w", err)
	}
	files := make([]*os.File, len(fds))
	for i, fd := range fds {
		if p.notifies() && i == len(fds)-1 {
			err = errors.Join(err, unix.SetNonblock(fd, true)) // so that the poller takes it
		}
		files[i] = os.NewFile(uintptr(fd), "handed over")
	}
	if err = errors.Join(err, h.sort(p, files)); err != nil {
		return Handed{}, errors.Join(fmt.Errorf("take descriptors: %w", err), h.Close())
	}
	return h, nil
}

// sort assigns the files in the order of Enter, and closes those that are not kept.
func (h *Handed) sort(p *Plan, files []*os.File) (err error) {
	next := func() *os.File {
		if len(files) == 0 {
			err = errors.Join(err, unix.EPROTO)
			return nil
		}
		f := files[0]
		files = files[1:]
		return f
	}
	if p.Listens() {
		h.Sockets = &Sockets{}
		inside := len(p.inside())
		for i := range inside + len(p.relays()) {
			if f := next(); f != nil {
				err = errors.Join(err, h.Sockets.take(p, i, inside, f))
			}
		}
	}
	if p.shares() {
		h.Share = next()
	}
	if p.holds() {
		h.Mounts = next()
		if p.User {
			h.User = next()
		}
	}
	var diag *os.File
	if p.connects() {
		diag = next()
	}
	if p.Terminal {
		h.Terminal = next()
	}
	if p.notifies() {
		listener := next()
		if err == nil {
			h.Calls = newCalls(listener, diag)
		} else if diag != nil {
			err = errors.Join(err, diag.Close())
		}
	}
	if len(files) > 0 {
		err = errors.Join(err, unix.EPROTO)
	}
	for _, f := range files {
		_ = f.Close() // nothing was written to it
	}
	return err
}

// take stores a socket by its index in the order of Enter. The first ones are inside the program's network, the others are
// relays.
func (s *Sockets) take(p *Plan, index, inside int, f *os.File) error {
	const upstreams = 3 // index of the first
	locals := upstreams + p.Upstreams
	dialers := locals + len(p.Locals)*len(p.loopbacks())
	if index >= dialers && index < inside {
		return s.Dialer.take(f)
	}
	defer f.Close() // the listener has a copy
	if index == 1 {
		conn, err := net.FilePacketConn(f)
		s.DNS = conn
		return err
	}
	l, err := net.FileListener(f)
	if err != nil {
		return err
	}
	switch {
	case index == 0:
		s.Proxy = l
	case index < upstreams:
		s.DNSTCP = l
	case index < locals:
		s.Upstreams = append(s.Upstreams, l)
	case index < dialers:
		s.Locals = append(s.Locals, l)
	default:
		s.Relay = append(s.Relay, l)
	}
	return nil
}
