package confine

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// backlog is the length of the accept queue. A program may open many connections at once, and the system drops those above
// it.
const backlog = 4096

// loopback brings up the loopback interface of the calling thread's network, and gives it the addresses 198.18.0.0/15,
// which names resolve to.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("bring loopback up: %w", err)
	}
	defer closeFD(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("bring loopback up: %w", err)
	}
	if err := address([4]byte{198, 18, 0, 1}, 15); err != nil {
		return fmt.Errorf("add address to loopback: %w", err)
	}
	return nil
}

// address adds an address to interface 1, loopback, where the whole prefix becomes local.
func address(ip [4]byte, prefix uint8) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer closeFD(fd)
	const attribute = unix.SizeofRtAttr + 4
	message := make([]byte, unix.SizeofNlMsghdr+unix.SizeofIfAddrmsg+2*attribute)
	*(*unix.NlMsghdr)(unsafe.Pointer(&message[0])) = unix.NlMsghdr{
		Len: uint32(len(message)), Type: unix.RTM_NEWADDR, Seq: 1,
		Flags: unix.NLM_F_REQUEST | unix.NLM_F_ACK | unix.NLM_F_CREATE | unix.NLM_F_EXCL,
	}
	*(*unix.IfAddrmsg)(unsafe.Pointer(&message[unix.SizeofNlMsghdr])) = unix.IfAddrmsg{Family: unix.AF_INET, Prefixlen: prefix, Index: 1}
	rest := message[unix.SizeofNlMsghdr+unix.SizeofIfAddrmsg:]
	for _, kind := range []uint16{unix.IFA_LOCAL, unix.IFA_ADDRESS} {
		binary.NativeEndian.PutUint16(rest, attribute)
		binary.NativeEndian.PutUint16(rest[2:], kind)
		copy(rest[unix.SizeofRtAttr:], ip[:])
		rest = rest[attribute:]
	}
	if err := unix.Sendto(fd, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 1024)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return err
	}
	if n < unix.SizeofNlMsghdr+4 {
		return unix.EPROTO
	}
	if errno := int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])); errno < 0 {
		return unix.Errno(-errno)
	}
	return nil
}

// addresses returns the addresses that the daemon serves in a program's network, in the order of their sockets.
func (p *Plan) addresses() []unix.SockaddrInet4 {
	local := [4]byte{127, 0, 0, 1}
	list := []unix.SockaddrInet4{{Port: ProxyPort, Addr: local}, {Port: dnsPort, Addr: local}, {Port: dnsPort, Addr: local}}
	for i := range p.Upstreams {
		list = append(list, unix.SockaddrInet4{Port: UpstreamPort + i, Addr: local})
	}
	for _, port := range p.relays() {
		list = append(list, unix.SockaddrInet4{Port: int(port)})
	}
	return list
}

// relays returns the ports on which connections to names are accepted: 80 and 443, and those granted by --host NAME:PORT.
func (p *Plan) relays() []uint16 {
	list := []uint16{80, 443}
	for _, port := range p.Ports {
		reserved := port == 0 || port == dnsPort || port >= ProxyPort && int(port) < UpstreamPort+p.Upstreams
		if !reserved && !slices.Contains(list, port) {
			list = append(list, port)
		}
	}
	return list
}

// datagram is the index in addresses of the only datagram socket.
const datagram = 1

// listen opens the sockets for HandOver.
func (p *Plan) listen() error {
	for i, at := range p.addresses() {
		fd, err := bound(at, i == datagram)
		if err != nil {
			return fmt.Errorf("listen on port %d of its network: %w", at.Port, err)
		}
		p.hand = append(p.hand, fd)
	}
	return nil
}

func bound(at unix.SockaddrInet4, packets bool) (int, error) {
	kind := unix.SOCK_STREAM
	if packets {
		kind = unix.SOCK_DGRAM
	}
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	if !packets {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
			return -1, err
		}
	}
	if err := unix.Bind(fd, &at); err != nil {
		return -1, err
	}
	if packets {
		return fd, nil
	}
	return fd, unix.Listen(fd, backlog)
}
