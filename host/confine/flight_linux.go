package confine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// flight is one call in progress.
type flight struct {
	connects *Calls
	id       uint64
	socket   int // a copy; -1 after it was passed to a goroutine that waits
	file     int // what the address leads to, if it is a path
}

func (f *flight) release() {
	if f.socket >= 0 {
		closeFD(f.socket)
	}
	if f.file > 0 {
		closeFD(f.file)
	}
}

// unix connects a Unix socket to an address of its family, if that is a socket of the program or of the kernel.
func (c *Calls) unix(f *flight, pid int, address []byte) (errno unix.Errno, done bool) {
	name := address[2:]
	if name[0] == 0 {
		if c.Owns != nil && !c.own(func(s boundSocket) bool { return s.name == string(name) }) {
			return unix.ECONNREFUSED, true // as if there was none
		}
		return f.connect(address)
	}
	name, _, _ = bytes.Cut(name, []byte{0})
	var err error
	if f.file, err = resolve(pid, string(name), false); err != nil {
		return number(err), true
	}
	if !c.valid(f.id) {
		return 0, false
	}
	var st unix.Stat_t
	if err := unix.Fstat(f.file, &st); err != nil {
		return number(err), true
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return unix.ECONNREFUSED, true
	}
	// The descriptor has the file that was checked, whatever is at the path now. The file of a socket never gets another.
	to := append(binary.NativeEndian.AppendUint16(nil, unix.AF_UNIX), fmt.Sprintf("/proc/self/fd/%d\x00", f.file)...)
	if c.Kernel != nil {
		if connect := c.Kernel(&st, pid); connect != nil {
			errno = connect(f.socket, func() (errno unix.Errno) {
				errno, done = f.connect(to)
				return errno
			})
			return errno, done || errno != 0
		}
	}
	if !c.own(func(s boundSocket) bool { return s.is(st.Dev, st.Ino) }) && !c.ownElsewhere(f.file, pid, &st) {
		if nobodyListens(f.file, pid, &st) {
			return unix.ECONNREFUSED, true // as what a server that has ended leaves behind
		}
		return unix.EACCES, true
	}
	return f.connect(to)
}

// nobodyListens reports whether no socket of this process's network is bound to a file.
func nobodyListens(file, pid int, st *unix.Stat_t) bool {
	diag, err := openDiag()
	if err != nil {
		return false
	}
	defer closeFD(diag)
	list, err := boundSockets(diag)
	if err != nil {
		return false
	}
	device, err := fileSystemOf(file, pid)
	return err == nil && !slices.ContainsFunc(list, func(s boundSocket) bool { return s.is(st.Dev, st.Ino) || s.is(device, st.Ino) })
}

// own reports whether a socket for which is returns true is the program's.
func (c *Calls) own(is func(boundSocket) bool) bool {
	list, err := boundSockets(int(c.diag.Fd()))
	return err == nil && slices.ContainsFunc(list, func(s boundSocket) bool { return is(s) && (c.Owns == nil || c.Owns(s.inode)) })
}

// ownElsewhere is own for a file on a file system whose number is not that of stat. The filter refuses to make parts of such
// a file system, in which the program could make a file with the same number.
func (c *Calls) ownElsewhere(file, pid int, st *unix.Stat_t) bool {
	device, err := fileSystemOf(file, pid)
	return err == nil && device != st.Dev && c.own(func(s boundSocket) bool { return s.is(device, st.Ino) })
}

// resolve opens the file at a path, or the link that is there, as a process sees it. Links of /proc are not followed: there they would be the daemon's.
func resolve(pid int, path string, link bool) (int, error) {
	root, err := rootOf(pid)
	if err != nil {
		return -1, err
	}
	defer closeFD(root)
	if !filepath.IsAbs(path) {
		dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
		if err != nil {
			return -1, err
		}
		path = dir + "/" + path
	}
	return resolveIn(root, path, link)
}

// rootOf opens the directory at which a process's paths begin.
func rootOf(pid int) (int, error) {
	return unix.Open(fmt.Sprintf("/proc/%d/root", pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// resolveIn is resolve for an absolute path that begins at a directory.
func resolveIn(root int, path string, link bool) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	if link {
		how.Flags |= unix.O_NOFOLLOW
	}
	const tries = 8
	for n := 0; ; n++ {
		fd, err := unix.Openat2(root, path, &how)
		if !errors.Is(err, unix.EAGAIN) || n == tries { // a rename at the same time
			return fd, err
		}
	}
}

// connect connects the copy of the program's socket. If that takes time, and the socket is a blocking one, a goroutine
// continues.
func (f *flight) connect(address []byte) (errno unix.Errno, done bool) {
	flags, err := unix.FcntlInt(uintptr(f.socket), unix.F_GETFL, 0)
	if err != nil {
		return number(err), true
	}
	kind, err := unix.GetsockoptInt(f.socket, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return number(err), true
	}
	if flags&unix.O_NONBLOCK != 0 || kind != unix.SOCK_STREAM && kind != unix.SOCK_SEQPACKET {
		return connect(f.socket, address), true // a datagram socket does not wait
	}
	// The program cannot use the socket before it is connected, so it does not see that the socket is not a blocking one.
	if _, err := unix.FcntlInt(uintptr(f.socket), unix.F_SETFL, flags|unix.O_NONBLOCK); err != nil {
		return number(err), true
	}
	errno = connect(f.socket, address)
	var waits *os.File
	if errno == unix.EINPROGRESS || errno == unix.EALREADY {
		waits = os.NewFile(uintptr(f.socket), "socket") // the poller takes only those that do not block
	}
	if _, err := unix.FcntlInt(uintptr(f.socket), unix.F_SETFL, flags); err != nil && errno == 0 {
		return number(err), true
	}
	if errno != unix.EINPROGRESS && errno != unix.EALREADY && errno != unix.EAGAIN {
		return errno, true
	}
	select {
	case f.connects.waiting <- struct{}{}:
	default:
		if waits != nil {
			f.socket = -1
			_ = waits.Close() // nothing was written to it
		}
		return unix.EAGAIN, true
	}
	later := *f
	f.socket, f.file = -1, 0
	f.connects.flights.Go(func() { later.wait(waits, address, flags) })
	return 0, false
}

func connect(socket int, address []byte) unix.Errno {
	var at unsafe.Pointer
	if len(address) > 0 {
		at = unsafe.Pointer(&address[0])
	}
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(socket), uintptr(at), uintptr(len(address)))
	return errno
}

// wait answers a call when the connection exists or has failed. Without waits the queue of the server is full, for which
// there is no event.
func (f *flight) wait(waits *os.File, address []byte, flags int) {
	defer func() { <-f.connects.waiting }()
	if waits != nil {
		f.socket = -1
		defer waits.Close() // nothing was written to it
		f.connects.answer(f.id, f.connected(waits))
		f.release()
		return
	}
	defer f.release()
	const first, last = time.Millisecond, 50 * time.Millisecond
	for pause := first; f.connects.valid(f.id); pause = min(2*pause, last) {
		select {
		case <-f.connects.ended:
			return
		case <-time.After(pause):
		}
		_, _ = unix.FcntlInt(uintptr(f.socket), unix.F_SETFL, flags|unix.O_NONBLOCK) // it cannot fail: see connect
		errno := connect(f.socket, address)
		_, _ = unix.FcntlInt(uintptr(f.socket), unix.F_SETFL, flags)
		if errno != unix.EAGAIN {
			f.connects.answer(f.id, errno)
			return
		}
	}
}

// connected waits until a socket is connected, and returns its error.
func (f *flight) connected(socket *os.File) (errno unix.Errno) {
	defer stopAtEnd(f.connects.ended, socket)()
	raw, err := socket.SyscallConn()
	if err == nil {
		err = raw.Write(func(fd uintptr) bool {
			polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
			if n, err := unix.Poll(polled, 0); n == 0 || err != nil {
				return false
			}
			failed, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
			errno = unix.Errno(failed)
			if err != nil {
				errno = number(err)
			}
			return true
		})
	}
	if err != nil {
		return unix.ECONNABORTED
	}
	return errno
}

// stopAtEnd ends the operations on a file when ended is closed, until the function that it returns is called.
func stopAtEnd(ended <-chan struct{}, file *os.File) (stop func()) {
	over := make(chan struct{})
	go func() {
		select {
		case <-ended:
			_ = file.SetDeadline(time.Unix(1, 0)) // it has a deadline: the poller has it
		case <-over:
		}
	}()
	return func() { close(over) }
}
