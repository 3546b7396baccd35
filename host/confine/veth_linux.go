package confine

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A program with the kernel's relays in its own network could not listen on their ports: a socket that is bound to all
// addresses conflicts with any other on its port. So the relays are in another network, at the other end of a pair of
// devices:
//
//	program: lo, eth0 198.18.0.1/15 ── eth0, 198.18.0.0/15: the relays
//
// No process is there. That network ends with its sockets, which the daemon has.

// eth0 is the index of the device in both networks, where loopback is 1.
const eth0 = 2

// hardware is the address of both devices, which ask for none (IFF_NOARP): what one sends is for the other.
const hardware = "\x02\x00\x00\x00\x00\x01"

// link connects the network of the calling thread with the one that the netlink socket relays belongs to.
func link(relays int) error {
	own, err := openNetlink()
	if err != nil {
		return err
	}
	defer closeFD(own)
	const up, peerOf = unix.IFF_UP | unix.IFF_NOARP, 1
	name, both := attribute(unix.IFLA_IFNAME, []byte("eth0\x00")), attribute(unix.IFLA_ADDRESS, []byte(hardware))
	both = append(both, attribute(unix.IFLA_MTU, word(65535))...) // no packet needs to be cut
	here := attribute(unix.IFLA_NET_NS_PID, word(uint32(unix.Gettid())))
	pair := attribute(unix.IFLA_LINKINFO, attribute(unix.IFLA_INFO_KIND, []byte("veth")),
		attribute(unix.IFLA_INFO_DATA, attribute(peerOf, device(eth0, 0), name, both, here)))
	first, all := [4]byte{198, 18, 0, 1}, [4]byte{198, 18, 0, 0}
	for _, step := range []struct {
		text    string
		fd      int
		kind    uint16
		message [][]byte
	}{
		{"make devices", relays, unix.RTM_NEWLINK, [][]byte{device(eth0, 0), name, both, pair}},
		{"bring device of relays up", relays, unix.RTM_SETLINK, [][]byte{device(eth0, up)}},
		{"bring device up", own, unix.RTM_SETLINK, [][]byte{device(eth0, up)}},
		// The system activates the device that was up first at a later time, and drops what it sends until then. It activates
		// one at once whose queue gets another length, which nothing else uses.
		{"activate device", relays, unix.RTM_SETLINK, [][]byte{device(eth0, 0), attribute(unix.IFLA_TXQLEN, word(1001))}},
		{"add address", own, unix.RTM_NEWADDR, [][]byte{address(eth0, first, 15)}},
		{"make addresses local to relays", relays, unix.RTM_NEWROUTE, [][]byte{route(loopbackIndex, unix.RTN_LOCAL, all, 15)}},
		{"add route", relays, unix.RTM_NEWROUTE, [][]byte{route(eth0, unix.RTN_UNICAST, first, 32)}},
	} {
		if err := ask(step.fd, step.kind, step.message...); err != nil {
			return fmt.Errorf("link network with relays: %s: %w", step.text, err)
		}
	}
	return nil
}

// freePorts lets programs without privileges listen on every port of the calling thread's network.
func freePorts() error {
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", []byte("0"), 0); err != nil {
		return fmt.Errorf("free ports below 1024: %w", err)
	}
	return nil
}
