package confine

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// openNetlink opens a socket of the calling thread's network, by which ask changes that network.
func openNetlink() (int, error) {
	return unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
}

// ask sends a message whose parts follow the header, and waits for the answer.
func ask(fd int, kind uint16, parts ...[]byte) error {
	body := slices.Concat(parts...)
	message := make([]byte, unix.SizeofNlMsghdr, unix.SizeofNlMsghdr+len(body))
	*(*unix.NlMsghdr)(unsafe.Pointer(&message[0])) = unix.NlMsghdr{
		Len: uint32(cap(message)), Type: kind, Seq: 1, Flags: unix.NLM_F_REQUEST | unix.NLM_F_ACK | unix.NLM_F_CREATE | unix.NLM_F_EXCL,
	}
	if err := unix.Sendto(fd, append(message, body...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
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

// attribute encodes an attribute, whose value may be attributes.
func attribute(kind uint16, values ...[]byte) []byte {
	value := slices.Concat(values...)
	b := binary.NativeEndian.AppendUint16(nil, uint16(unix.SizeofRtAttr+len(value)))
	b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
	for len(b)%unix.RTA_ALIGNTO != 0 {
		b = append(b, 0)
	}
	return b
}

func word(n uint32) []byte { return binary.NativeEndian.AppendUint32(nil, n) }

// device begins a message about the device with an index. The flags are set.
func device(index int32, flags uint32) []byte {
	b := make([]byte, unix.SizeofIfInfomsg)
	*(*unix.IfInfomsg)(unsafe.Pointer(&b[0])) = unix.IfInfomsg{Index: index, Flags: flags, Change: flags}
	return b
}

// address begins a message that gives a device an IPv4 address.
func address(index uint32, ip [4]byte, prefix uint8) []byte {
	b := make([]byte, unix.SizeofIfAddrmsg)
	*(*unix.IfAddrmsg)(unsafe.Pointer(&b[0])) = unix.IfAddrmsg{Family: unix.AF_INET, Prefixlen: prefix, Index: index}
	return slices.Concat(b, attribute(unix.IFA_LOCAL, ip[:]), attribute(unix.IFA_ADDRESS, ip[:]))
}

// route begins a message that adds a route of a kind to the table of local addresses, which is searched first.
func route(index uint32, kind uint8, ip [4]byte, prefix uint8) []byte {
	scope := uint8(unix.RT_SCOPE_LINK)
	if kind == unix.RTN_LOCAL {
		scope = unix.RT_SCOPE_HOST
	}
	b := make([]byte, unix.SizeofRtMsg)
	*(*unix.RtMsg)(unsafe.Pointer(&b[0])) = unix.RtMsg{
		Family: unix.AF_INET, Dst_len: prefix, Table: unix.RT_TABLE_LOCAL, Protocol: unix.RTPROT_STATIC, Scope: scope, Type: kind,
	}
	return slices.Concat(b, attribute(unix.RTA_DST, ip[:]), attribute(unix.RTA_OIF, word(index)))
}
