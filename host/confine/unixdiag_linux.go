package confine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// boundSocket is a Unix socket that has a name.
type boundSocket struct {
	inode uint32 // of the socket, as in /proc/PID/fd
	name  string // an abstract one begins with NUL; a path is as its program wrote it
	// device and file are those of a path: the number of the file system, and the lower half of the file's.
	device, file uint32
}

// Constants of linux/unix_diag.h and linux/sock_diag.h.
const (
	diagShowName = 0x1
	diagShowVFS  = 0x2
	diagName     = 0
	diagVFS      = 1
	diagHeader   = 16 // bytes of unix_diag_msg
)

// openDiag opens a socket that lists the Unix sockets of the calling thread's network.
func openDiag() (int, error) {
	return unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
}

// boundSockets lists the Unix sockets with a name in the network of a socket of openDiag.
func boundSockets(diag int) ([]boundSocket, error) {
	const length = unix.SizeofNlMsghdr + 24 // of unix_diag_req
	request := make([]byte, length)
	*(*unix.NlMsghdr)(unsafe.Pointer(&request[0])) = unix.NlMsghdr{
		Len: length, Type: unix.SOCK_DIAG_BY_FAMILY, Seq: 1, Flags: unix.NLM_F_REQUEST | unix.NLM_F_DUMP,
	}
	request[unix.SizeofNlMsghdr] = unix.AF_UNIX
	binary.NativeEndian.PutUint32(request[unix.SizeofNlMsghdr+4:], ^uint32(0)) // all states
	binary.NativeEndian.PutUint32(request[unix.SizeofNlMsghdr+12:], diagShowName|diagShowVFS)
	if err := unix.Sendto(diag, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, fmt.Errorf("list sockets: %w", err)
	}
	var list []boundSocket
	answer := make([]byte, 32<<10)
	for {
		n, _, err := unix.Recvfrom(diag, answer, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list sockets: %w", err)
		}
		done, err := readSockets(answer[:n], &list)
		if done || err != nil {
			return list, err
		}
	}
}

// readSockets reads the messages of one datagram.
func readSockets(b []byte, list *[]boundSocket) (done bool, err error) {
	for len(b) >= unix.SizeofNlMsghdr {
		header := *(*unix.NlMsghdr)(unsafe.Pointer(&b[0]))
		if int(header.Len) < unix.SizeofNlMsghdr || int(header.Len) > len(b) {
			return true, fmt.Errorf("list sockets: %w", unix.EPROTO)
		}
		body := b[unix.SizeofNlMsghdr:header.Len]
		switch header.Type {
		case unix.NLMSG_DONE:
			return true, nil
		case unix.NLMSG_ERROR:
			if len(body) >= 4 {
				err = unix.Errno(-int32(binary.NativeEndian.Uint32(body)))
			}
			return true, fmt.Errorf("list sockets: %w", errors.Join(unix.EPROTO, err))
		}
		if s, ok := readSocket(body); ok {
			*list = append(*list, s)
		}
		b = b[min(align(int(header.Len)), len(b)):]
	}
	return false, nil
}

// readSocket reads one unix_diag_msg, if the socket has a name.
func readSocket(b []byte) (s boundSocket, named bool) {
	if len(b) < diagHeader {
		return s, false
	}
	s.inode = binary.NativeEndian.Uint32(b[4:])
	for b = b[diagHeader:]; len(b) >= unix.SizeofRtAttr; {
		length, kind := int(binary.NativeEndian.Uint16(b)), binary.NativeEndian.Uint16(b[2:])
		if length < unix.SizeofRtAttr || length > len(b) {
			return s, false
		}
		switch value := b[unix.SizeofRtAttr:length]; {
		case kind == diagName:
			s.name, named = string(value), len(value) > 0
		case kind == diagVFS && len(value) >= 8:
			s.file, s.device = binary.NativeEndian.Uint32(value), binary.NativeEndian.Uint32(value[4:])
		}
		b = b[min(align(length), len(b)):]
	}
	return s, named
}

// align rounds up to the alignment of netlink messages and their attributes.
func align(n int) int { return (n + 3) &^ 3 }

// is reports whether the socket is bound to the file. device is the number of the file's file system.
func (s boundSocket) is(device uint64, file uint64) bool {
	const minorBits = 20 // in the system's own numbers
	number := unix.Major(device)<<minorBits | unix.Minor(device)
	return s.name != "" && s.name[0] != 0 && s.file == uint32(file) && s.device == number
}

// listsSockets reports whether this system lists the files of Unix sockets.
func listsSockets() bool {
	fd, err := openDiag()
	if err != nil {
		return false
	}
	defer closeFD(fd)
	_, err = boundSockets(fd)
	return err == nil
}

// fileSystemOf returns the number of the file system of an open file, which process pid sees too. It differs from stat's for
// a file system with parts, such as btrfs.
func fileSystemOf(fd, pid int) (uint64, error) {
	info, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
	if err != nil {
		return 0, err
	}
	var id int
	if _, after, ok := strings.Cut(string(info), "mnt_id:"); !ok {
		return 0, unix.EPROTO
	} else if _, err := fmt.Sscan(after, &id); err != nil {
		return 0, err
	}
	mounts, err := os.Open(fmt.Sprintf("/proc/%d/mountinfo", pid))
	if err != nil {
		return 0, err
	}
	defer mounts.Close() // read only
	found, err := mountinfo.GetMountsFromReader(mounts, func(m *mountinfo.Info) (skip, stop bool) { return m.ID != id, m.ID == id })
	if err != nil || len(found) == 0 {
		return 0, errors.Join(unix.ENOENT, err)
	}
	return unix.Mkdev(uint32(found[0].Major), uint32(found[0].Minor)), nil
}
