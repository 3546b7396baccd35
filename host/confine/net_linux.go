package confine

import (
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// backlog is the length of the accept queue. A program may open many connections at once, and the system drops those above
// it.
const backlog = 4096

// loopbackIndex is the index of the loopback interface in every network.
const loopbackIndex = 1

// loopback brings up the loopback interface of the calling thread's network.
func loopback() error {
	fd, err := openNetlink()
	if err != nil {
		return fmt.Errorf("bring loopback up: %w", err)
	}
	defer closeFD(fd)
	if err := ask(fd, unix.RTM_SETLINK, device(loopbackIndex, unix.IFF_UP)); err != nil {
		return fmt.Errorf("bring loopback up: %w", err)
	}
	return nil
}

// names gives the loopback interface the addresses 198.18.0.0/15, which names resolve to.
func names() error {
	fd, err := openNetlink()
	if err != nil {
		return fmt.Errorf("add address to loopback: %w", err)
	}
	defer closeFD(fd)
	if err := ask(fd, unix.RTM_NEWADDR, address(loopbackIndex, [4]byte{198, 18, 0, 1}, 15)); err != nil {
		return fmt.Errorf("add address to loopback: %w", err)
	}
	return nil
}

// enterNetwork sets up the calling thread's network, which is new, and opens the sockets that the daemon serves.
func (p *Plan) enterNetwork() error {
	if err := loopback(); err != nil {
		return err
	}
	var relays []int
	switch {
	case p.Link && p.Listens():
		var err error
		if relays, err = p.separate(); err != nil {
			return err
		}
	case p.Listens():
		if err := names(); err != nil {
			return err
		}
	}
	if p.Link {
		if err := freePorts(); err != nil {
			return err
		}
	}
	if !p.Listens() {
		return nil
	}
	list := p.inside()
	if !p.Link {
		list = append(list, p.relays()...)
	}
	sockets, err := open(list)
	p.hand = slices.Concat(p.hand, sockets, relays)
	return err
}

// separate leaves the calling thread's network to the relays, whose sockets it returns, for a new one that is linked with
// it.
func (p *Plan) separate() ([]int, error) {
	fd, err := openNetlink()
	if err != nil {
		return nil, fmt.Errorf("link network with relays: %w", err)
	}
	defer closeFD(fd)
	relays, err := open(p.relays())
	if err != nil {
		return nil, err
	}
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("make network: %w", err)
	}
	if err := loopback(); err != nil {
		return nil, err
	}
	return relays, link(fd)
}

// socket is one that the daemon serves.
type socket struct {
	netip.AddrPort
	kind int
}

// The kinds of sockets.
const (
	listening = unix.SOCK_STREAM
	packets   = unix.SOCK_DGRAM
	unbound   = -1
)

// loopbacks returns the addresses that localhost may mean.
func (p *Plan) loopbacks() []netip.Addr {
	list := []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	if !p.IPv6 {
		list = list[:1]
	}
	return list
}

// inside returns the sockets in the program's network that the daemon serves, in the order in which they are handed over.
func (p *Plan) inside() []socket {
	at := func(port int) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port))
	}
	list := []socket{{at(ProxyPort), listening}, {at(dnsPort), packets}, {at(dnsPort), listening}}
	for i := range p.Upstreams {
		list = append(list, socket{at(UpstreamPort + i), listening})
	}
	for _, port := range p.Locals {
		for _, loopback := range p.loopbacks() {
			list = append(list, socket{netip.AddrPortFrom(loopback, port), listening})
		}
	}
	if p.Publishes {
		for _, loopback := range p.loopbacks() {
			list = append(list, socket{netip.AddrPortFrom(loopback, dialPort), listening}, socket{netip.AddrPortFrom(loopback, 0), unbound})
		}
	}
	return list
}

// relays returns the sockets on which connections to names are accepted: on 80 and 443, and the ports of --host NAME:PORT. They
// are handed over last.
func (p *Plan) relays() []socket {
	ports := []uint16{80, 443}
	for _, port := range p.Ports {
		reserved := port == 0 || port == dnsPort || port >= ProxyPort && int(port) < UpstreamPort+p.Upstreams
		if (p.Link && port > 0 || !reserved) && !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	list := make([]socket, len(ports))
	for i, port := range ports {
		list[i] = socket{netip.AddrPortFrom(netip.IPv4Unspecified(), port), listening}
	}
	return list
}

// open opens sockets in the calling thread's network.
func open(list []socket) (fds []int, err error) {
	for _, s := range list {
		fd, err := s.open()
		if err != nil {
			return nil, fmt.Errorf("listen on port %d of its network: %w", s.Port(), err)
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

func (s socket) open() (int, error) {
	family, at := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: int(s.Port()), Addr: s.Addr().As16()})
	if s.Addr().Is4() {
		family, at = unix.AF_INET, &unix.SockaddrInet4{Port: int(s.Port()), Addr: s.Addr().As4()}
	}
	if s.kind == unbound {
		return unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	}
	fd, err := unix.Socket(family, s.kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	if s.kind == packets {
		return fd, unix.Bind(fd, at)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return -1, err
	}
	if err := unix.Bind(fd, at); err != nil {
		return -1, err
	}
	return fd, unix.Listen(fd, backlog)
}
