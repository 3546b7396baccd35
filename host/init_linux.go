package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The shim stays as the init of the program that it starts: the program's parent, and the leader of its session. So the program can
// be stopped with a key, as below a shell, orphans are reaped, and in a PID namespace the program is not the first process, which
// signals do not end. An init tells the host of its program by reports over a socket.

// event is what an init reports of its program.
type event byte

const (
	eventBegan   event = 'b' // sent by the program itself, so that the system tells its number
	eventStopped event = 's'
	eventEnded   event = 'e' // it is not reaped, so that its number is not used again
)

// report is a message of an init: its fields in the machine's order of bytes.
type report struct {
	Event  event
	_      [3]byte
	Status uint32
	Usage  syscall.Rusage
}

// initName is what an init is called in lists of processes.
const initName = "pwos-init"

// execute starts the program, of which this process becomes the init. It returns only if that fails.
func (o order) execute() (string, error) {
	f, err := o.newFork()
	if err != nil {
		return "exec", err
	}
	if !o.isolated() {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return "fork", err
		}
	}
	hangUp := watchHangUps()
	spare := o.spare()
	conceal()
	// Little follows the fork: until the program is executed, each page that this process writes to is copied.
	pid, errno := forked(f)
	if errno != 0 {
		return "fork", errno
	}
	hangUp.begin(pid)
	for _, fd := range spare {
		closeFD(fd)
	}
	_ = unix.Chdir("/") // an init that keeps a directory in use is still an init
	o.attend(pid)
	return "", nil
}

// hangUps passes hang-ups on to the program: the system tells the leader of a session only.
type hangUps struct {
	program atomic.Int64 // 0: it was not started
	early   atomic.Bool  // there was one before that
}

func watchHangUps() *hangUps {
	h := new(hangUps)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	go func() {
		for range signals {
			h.early.Store(true)
			h.tell()
		}
	}()
	return h
}

// begin names the program.
func (h *hangUps) begin(pid int) {
	h.program.Store(int64(pid))
	if h.early.Load() {
		h.tell()
	}
}

func (h *hangUps) tell() {
	if pid := int(h.program.Load()); pid > 0 {
		_ = unix.Kill(-pid, unix.SIGHUP) // the program may have ended
		_ = unix.Kill(-pid, unix.SIGCONT)
	}
}

// isolated reports whether the program is in a PID namespace.
func (o order) isolated() bool { return o.plan != nil && o.plan.PIDs }

// conceal hides the plan and the program's environment from the program, which has the same user, before there is one. None of this
// can fail here.
func conceal() {
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // execve allows it again
	name, _ := unix.BytePtrFromString(initName)
	_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(name)), 0, 0, 0)
	for i, word := range os.Args {
		memory := unsafe.Slice(unsafe.StringData(word), len(word))
		clear(memory)
		if i == 0 {
			copy(memory, initName)
		}
	}
}

// spare lists the descriptors that an init does not need. One that keeps more is still an init, so that errors do not matter.
func (o order) spare() (list []int) {
	open, _ := os.ReadDir("/proc/self/fd")
	for _, entry := range open {
		fd, _ := strconv.Atoi(entry.Name())
		to, err := os.Readlink("/proc/self/fd/" + entry.Name())
		if err != nil || fd == o.report || to == "anon_inode:[eventpoll]" || to == "anon_inode:[eventfd]" { // those of Go's runtime
			continue
		}
		list = append(list, fd)
	}
	return list
}

// attend reports what happens to the program, and reaps orphans. It does not return: the host kills an init.
func (o order) attend(program int) {
	for {
		child, event, status, usage, err := nextChild()
		switch {
		case err != nil: // interrupted by a signal
		case child != program && event == eventEnded:
			_, _ = unix.Wait4(child, nil, unix.WNOHANG, nil)
		case child == program && event == eventEnded:
			o.send(report{Event: event, Status: uint32(status), Usage: usage})
			for {
				_ = unix.Pause()
			}
		default:
			// The stop is taken before the report: who reads that may continue the program, which may stop again. Unlike wait4, this does
			// not take an end that came since.
			_ = unix.Waitid(unix.P_PID, child, nil, unix.WSTOPPED|unix.WNOHANG, nil)
			if child == program {
				o.send(report{Event: event, Status: uint32(status)})
			}
		}
	}
}

// send sends a report. A host that has ended does not read it.
func (o order) send(r report) {
	text, _ := binary.Append(nil, binary.NativeEndian, r) // a type of fixed size
	_, _ = unix.Write(o.report, text)
}

// childInfo is the system's siginfo_t as waitid fills it in.
type childInfo struct {
	_      [2]int32 // signal, error
	code   int32
	_      [unsafe.Sizeof(uintptr(0))/4 - 1]int32 // alignment of the union
	pid    int32
	_      uint32 // user
	status int32
	_      [128]byte
}

// nextChild waits until a child has ended or stopped, and leaves it as it is.
func nextChild() (pid int, what event, status unix.WaitStatus, usage syscall.Rusage, err error) {
	// Codes of SIGCHLD; 1: exited. Trapped is a child that has made its parent its tracer (PTRACE_TRACEME), and stops at each signal.
	const killed, dumped, trapped, stopped = 2, 3, 4, 5
	const core = 0x80
	var info childInfo
	_, _, errno := unix.Syscall6(unix.SYS_WAITID, unix.P_ALL, 0, uintptr(unsafe.Pointer(&info)), unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, uintptr(unsafe.Pointer(&usage)), 0)
	if errno != 0 {
		return 0, 0, 0, usage, errno
	}
	switch info.code {
	case killed:
		return int(info.pid), eventEnded, unix.WaitStatus(info.status), usage, nil
	case dumped:
		return int(info.pid), eventEnded, unix.WaitStatus(info.status | core), usage, nil
	case trapped, stopped:
		return int(info.pid), eventStopped, unix.WaitStatus(info.status), usage, nil
	}
	return int(info.pid), eventEnded, unix.WaitStatus(info.status << 8), usage, nil
}

// newFork collects what the program's process needs.
func (o order) newFork() (f *fork, err error) {
	f = &fork{began: eventBegan, report: uintptr(o.report), status: uintptr(o.status), self: uintptr(os.Getpid()), terminal: ^uintptr(0)}
	copy(f.failed[:], "exec 0000 -")
	if f.path, err = unix.BytePtrFromString(o.program); err != nil {
		return nil, err
	}
	if f.argv, err = pointers(o.argv); err != nil {
		return nil, err
	}
	if f.env, err = pointers(o.env); err != nil {
		return nil, err
	}
	if o.isolated() {
		f.self = 0 // the system kills the program with its init
	}
	for fd := range 3 {
		if _, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil {
			f.terminal = uintptr(fd)
			break
		}
	}
	if o.memory == 0 {
		return f, nil
	}
	now, err := hard(0, unix.RLIMIT_DATA)
	if err != nil {
		return nil, err
	}
	value := min(uint64(o.memory), now)
	f.memory = &unix.Rlimit{Cur: value, Max: value}
	return f, nil
}

// fork has what the program's process needs between fork and exec, where it must not allocate.
type fork struct {
	path      *byte
	argv, env []*byte
	report    uintptr
	status    uintptr
	self      uintptr // 0: the program ends with its init
	terminal  uintptr // descriptor of the controlling terminal; none if it is no descriptor
	// memory is set as late as possible: the process may already exceed it. RLIMIT_DATA is used instead of RLIMIT_AS: it counts
	// private writable memory, while RLIMIT_AS counts address space, of which Go, Node and Java reserve many gigabytes that they
	// never use. It does not count shared memory, and counts stacks of threads in full. RLIMIT_NPROC is not used: it counts all
	// processes of a user, of all agents, and none of user 0; the host counts itself.
	memory *unix.Rlimit
	began  event
	group  int32
	failed [11]byte // for status, with room for the number of the error
}

// become becomes the program, in a process group of its own, in the foreground of the terminal. What fails is told over status.
//
//go:norace
//go:nosplit
func (f *fork) become() {
	own, _, _ := unix.RawSyscall(unix.SYS_GETPID, 0, 0, 0)
	f.group = int32(own)
	_, _, errno := unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0, 0)
	if parent, _, _ := unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0); errno == 0 && f.self != 0 && parent != f.self {
		errno = unix.ESRCH // the init has ended already
	}
	if errno == 0 {
		_, _, errno = unix.RawSyscall(unix.SYS_SETPGID, 0, 0, 0)
	}
	if errno == 0 && f.terminal != ^uintptr(0) {
		// While TTOU is blocked, a process in the background may do this.
		_, _, errno = unix.RawSyscall(unix.SYS_IOCTL, f.terminal, unix.TIOCSPGRP, uintptr(unsafe.Pointer(&f.group)))
	}
	if errno == 0 {
		_, _, errno = unix.RawSyscall(unix.SYS_WRITE, f.report, uintptr(unsafe.Pointer(&f.began)), 1)
	}
	afterForkInChild()
	if errno == 0 && f.memory != nil {
		_, _, errno = unix.RawSyscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_DATA, uintptr(unsafe.Pointer(f.memory)), 0, 0, 0)
	}
	if errno == 0 {
		_, _, errno = unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(f.path)), uintptr(unsafe.Pointer(&f.argv[0])), uintptr(unsafe.Pointer(&f.env[0])))
	}
	const digits = 4
	for i, rest := digits, errno; i > 0; i, rest = i-1, rest/10 {
		f.failed[len("exec ")+i-1] = '0' + byte(rest%10)
	}
	unix.RawSyscall(unix.SYS_WRITE, f.status, uintptr(unsafe.Pointer(&f.failed)), uintptr(len(f.failed)))
	for {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 127, 0, 0)
	}
}

// openReports opens the socket for the reports of an init. The system adds the sender's number to each.
func openReports() (ours *net.UnixConn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	end, theirs := os.NewFile(uintptr(fds[0]), "reports"), os.NewFile(uintptr(fds[1]), "reports")
	defer closeFile(end)
	if err = unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err == nil {
		var conn net.Conn
		if conn, err = net.FileConn(end); err == nil {
			return conn.(*net.UnixConn), theirs, nil
		}
	}
	closeFile(theirs)
	return nil, nil, fmt.Errorf("open socket for reports: %w", err)
}

// readReport returns a report, and the number of the process that has sent it.
func readReport(from *net.UnixConn) (r report, sender int, err error) {
	text, control := make([]byte, binary.Size(r)), make([]byte, unix.CmsgSpace(unix.SizeofUcred))
	n, controls, _, _, err := from.ReadMsgUnix(text, control)
	if err != nil {
		return r, 0, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:controls])
	if err != nil || len(messages) != 1 || n == 0 {
		return r, 0, errors.Join(io.ErrUnexpectedEOF, err)
	}
	credentials, err := unix.ParseUnixCredentials(&messages[0])
	if err != nil {
		return r, 0, err
	}
	if r.Event = event(text[0]); r.Event != eventBegan {
		_, err = binary.Decode(text[:n], binary.NativeEndian, &r)
	}
	return r, int(credentials.Pid), err
}

// newPIDs makes attr start the first process of a PID namespace.
func newPIDs(attr *syscall.SysProcAttr) { attr.Cloneflags |= unix.CLONE_NEWPID }

// hear follows the reports of the program's init until the program has ended, or the init has.
func (p *Process) hear() {
	p.watched.hear(func(r report, sender int) {
		switch {
		case r.Event == eventBegan && p.OSPID() == 0:
			p.name(sender)
		case r.Event == eventStopped:
			p.stopped()
		}
	})
	if p.OSPID() == 0 {
		close(p.named) // nothing has begun
	}
}
