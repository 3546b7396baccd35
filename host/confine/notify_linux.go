package confine

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A socket with a path can be reached by everyone who sees its file, whatever the network namespace, and before version 9
// Landlock does not control that. So a program's connect(2) is carried out by the daemon: the filter stops the call and
// notifies it. The daemon works on its own copies of the socket and the address, since the program can change both at any
// time, and never lets the call continue. When the daemon has ended the call fails.
//
// Of these only connect needs this: the filter refuses Unix datagram sockets, and on the others sendto and sendmsg take no address.
//
// The daemon also carries out chmod with the bit setgid, which is harmless for a directory; on a file, it would give the program's group to
// those who run it. And it is told of what is executed.

// notification is struct seccomp_notif.
type notification struct {
	id         uint64
	pid, flags uint32
	number     int32
	arch       uint32
	ip         uint64
	args       [6]uint64
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// Calls carries out a program's calls of connect, and of chmod with the bit setgid, and sees those of execve.
type Calls struct {
	// User is the user that the program runs as. It is set before Serve.
	User int
	// Kernel returns the function that connects a copy of the program's socket to the socket of the kernel with that file,
	// or nil if the file is not one of the kernel's. connect connects the copy. It is set before Serve.
	Kernel func(st *unix.Stat_t, pid int) func(socket int, connect func() unix.Errno) unix.Errno
	// Owns reports whether a process of the program has the socket with that inode open. nil: all sockets of its network are
	// the program's.
	Owns func(inode uint32) bool
	// Exec is called, from one goroutine, with what a process is about to execute, if Plan.Execs. The process waits meanwhile, and
	// executes it if Exec returns 0; else its call fails with that number. It is set before Serve.
	Exec func(*Exec) unix.Errno

	listener *os.File
	diag     *os.File // nil: connect is not among the calls
	ended    chan struct{}
	waiting  chan struct{} // its capacity bounds the calls that wait
	flights  sync.WaitGroup
	begins   []byte        // see readBegins
	search   search        // see look
	spent    time.Duration // see rest
	rested   time.Time
}

// maxWaiting is the number of calls of one program that may wait at a time, for a server that does not accept.
const maxWaiting = 64

func newCalls(listener, diag *os.File) *Calls {
	return &Calls{listener: listener, diag: diag, ended: make(chan struct{}), waiting: make(chan struct{}, maxWaiting)}
}

// Close ends Serve.
func (c *Calls) Close() error {
	if c.diag == nil {
		return c.listener.Close()
	}
	return errors.Join(c.listener.Close(), c.diag.Close())
}

// Serve answers calls until the last process of the program has ended, or Close.
func (c *Calls) Serve() {
	defer c.flights.Wait()
	defer close(c.ended)
	defer c.search.end()
	raw, err := c.listener.SyscallConn()
	if err != nil {
		return
	}
	c.wakeAlike(raw)
	for {
		var call notification
		alive := false
		if raw.Read(func(fd uintptr) bool {
			var done bool
			done, alive = receive(int(fd), &call)
			return done
		}) != nil || !alive {
			return
		}
		begin := time.Now()
		handle := c.chmod
		switch call.number {
		case unix.SYS_CONNECT:
			handle = c.connect
		case unix.SYS_EXECVE, unix.SYS_EXECVEAT:
			handle = c.exec
		}
		if errno, done := handle(&call); done {
			c.answer(call.id, errno)
		}
		c.rest(time.Since(begin))
	}
}

// wakeAlike has the system wake the daemon, and then the caller, on the processor of the other, which waits anyway. Linux before 6.6
// cannot, and calls take longer.
func (c *Calls) wakeAlike(raw syscall.RawConn) {
	_ = raw.Control(func(fd uintptr) {
		unix.Syscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	})
}

// receive takes the next notification. It returns done without one if the caller must wait, and not alive at the end.
func receive(fd int, call *notification) (done, alive bool) {
	for {
		polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(polled, 0); n == 0 || errors.Is(err, unix.EINTR) {
			return false, true
		}
		if polled[0].Revents&unix.POLLIN == 0 {
			return true, false
		}
		*call = notification{}
		switch _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(call))); errno {
		case 0:
			return true, true
		case unix.ENOENT, unix.EINTR: // the caller was killed
		default:
			return true, false
		}
	}
}

// answer ends a call. It fails if the caller was killed.
func (c *Calls) answer(id uint64, errno unix.Errno) {
	r := response{id: id, errno: -int32(errno)}
	c.control(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
}

// valid reports whether the caller still waits. Only then do its number and its descriptors belong to it.
func (c *Calls) valid(id uint64) bool {
	return c.control(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&id)) == 0
}

func (c *Calls) control(request uintptr, argument unsafe.Pointer) (errno unix.Errno) {
	errno = unix.EBADF
	raw, err := c.listener.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) { _, _, errno = unix.Syscall(unix.SYS_IOCTL, fd, request, uintptr(argument)) })
	}
	return errno
}

// A program that connects without pause may use half of a processor of the daemon's time, and more for a moment.
const (
	restShare = 2
	restBurst = 50 * time.Millisecond
)

// rest delays the next call if the last ones took too long.
func (c *Calls) rest(took time.Duration) {
	now := time.Now()
	c.spent = max(0, c.spent-now.Sub(c.rested)/restShare) + took
	c.rested = now
	if c.spent < restBurst {
		return
	}
	const most = 100 * time.Millisecond
	time.Sleep(min(took, most))
}

// connect carries out connect. done is false if the answer follows, or nobody waits for one.
func (c *Calls) connect(call *notification) (errno unix.Errno, done bool) {
	const most = unix.SizeofSockaddrAny // sockaddr_storage is a little longer; no family needs that
	length := int(int32(call.args[2]))
	if length < 0 || length > most+16 {
		return unix.EINVAL, true
	}
	pid := int(call.pid)
	address, err := readMemory(pid, uintptr(call.args[1]), length)
	if err != nil {
		return unix.EFAULT, true
	}
	socket, err := copyOf(pid, int(int32(call.args[0])))
	if err != nil {
		return number(err), true
	}
	f := &flight{connects: c, id: call.id, socket: socket}
	defer f.release()
	if !c.valid(call.id) {
		return 0, false
	}
	family, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return number(err), true
	}
	if family != unix.AF_UNIX && family != unix.AF_INET && family != unix.AF_INET6 {
		return unix.EOPNOTSUPP, true // the daemon's privileges count there
	}
	if family != unix.AF_UNIX || length < 3 || *(*uint16)(unsafe.Pointer(&address[0])) != unix.AF_UNIX {
		return f.connect(address)
	}
	return c.unix(f, pid, address)
}

// readMemory copies bytes of a process.
func readMemory(pid int, at uintptr, length int) ([]byte, error) {
	if length == 0 {
		return nil, nil
	}
	b := make([]byte, length)
	n, err := unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &b[0], Len: uint64(length)}}, []unix.RemoteIovec{{Base: at, Len: length}}, 0)
	if err == nil && n != length {
		err = unix.EFAULT
	}
	return b, err
}

// copyOf copies a descriptor of a thread.
func copyOf(thread, fd int) (int, error) {
	target, err := unix.PidfdOpen(thread, unix.PIDFD_THREAD)
	if errors.Is(err, unix.EINVAL) { // Linux before 6.9
		var process int
		if process, err = processOf(thread); err == nil {
			target, err = unix.PidfdOpen(process, 0)
		}
	}
	if err != nil {
		return -1, err
	}
	defer closeFD(target)
	return unix.PidfdGetfd(target, fd, 0)
}

// processOf returns the process of a thread.
func processOf(thread int) (pid int, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", thread))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(status), "\nTgid:")
	_, err = fmt.Sscan(after, &pid)
	return pid, err
}

// number returns the system's number of an error.
func number(err error) unix.Errno {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return unix.EACCES
}
