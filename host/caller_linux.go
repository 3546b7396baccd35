package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/internal/peercred"
)

// callerTime bounds the time in which a caller hands over its descriptors.
const callerTime = 10 * time.Second

// caller is a client that has handed over its standard input, output and error to a program. As long as the program runs, each
// byte that the client sends is the number of a signal for it, and the end of the connection ends it.
type caller struct {
	conn  *net.UnixConn
	files []handed    // by number, until they are the program's
	deaf  bool        // it does not read what it is told
	waits atomic.Bool // it was told that the program has stopped, and has not continued it since
	// process is a pidfd of the client, -1 if there is none: one that waits is continued when the program has ended.
	process int
	// opens says that the client can use a terminal that the host opens, in place of those among files.
	opens bool
	// logs says that the client shows the program's output itself, and returns it to the log.
	logs bool
}

// handed is a descriptor of a caller. It is no os.File, which would change its mode (O_NONBLOCK) for the caller too.
type handed int

// Fd returns the descriptor.
func (h handed) Fd() uintptr { return uintptr(h) }

// Close closes it.
func (h handed) Close() error { return unix.Close(int(h)) }

// regular reports whether it is a file on a disk.
func (h handed) regular() bool {
	var info unix.Stat_t
	return unix.Fstat(int(h), &info) == nil && info.Mode&unix.S_IFMT == unix.S_IFREG
}

// terminal reports whether it is the program's end of a pseudo-terminal.
func (h handed) terminal() bool {
	var info unix.Stat_t
	return unix.Fstat(int(h), &info) == nil && info.Mode&unix.S_IFMT == unix.S_IFCHR && isTerminal(info.Rdev)
}

// dup returns a copy for the host's own use.
func (h handed) dup() (*os.File, error) {
	fd, err := unix.FcntlInt(h.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("copy descriptor: %w", err)
	}
	return os.NewFile(uintptr(fd), "handed over"), nil
}

// openCaller receives the descriptors of the caller that listens at path. Only this process's user and root can be one.
func openCaller(ctx context.Context, path string) (c *caller, err error) {
	ctx, cancel := context.WithTimeout(ctx, callerTime)
	defer cancel()
	var dialer net.Dialer
	dialed, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("reach caller: %w", err)
	}
	c = &caller{conn: dialed.(*net.UnixConn), process: -1}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	uid, err := peercred.User(c.conn)
	if err != nil {
		return c, fmt.Errorf("identify caller: %w", err)
	}
	if uid != 0 && uid != os.Geteuid() {
		return c, fmt.Errorf("%w: the caller is user %d, not %d", ErrCommand, uid, os.Geteuid())
	}
	if pid, err := peercred.PID(c.conn); err == nil { // which lives: it listens
		if c.process, err = unix.PidfdOpen(pid, 0); err != nil {
			c.process = -1 // a client that stops is then continued by its shell only
		}
	}
	deadline, _ := ctx.Deadline()
	if err := c.conn.SetReadDeadline(deadline); err != nil {
		return c, fmt.Errorf("receive descriptors: %w", err)
	}
	if err := c.receive(); err != nil {
		return c, err
	}
	if err := c.conn.SetReadDeadline(time.Time{}); err != nil {
		return c, fmt.Errorf("receive descriptors: %w", err)
	}
	return c, nil
}

// receive receives standard input, output and error, in one message.
func (c *caller) receive() error {
	const want, room = 3, 16 // with room for more, too many are told from enough; the system closes what has no room
	control := make([]byte, unix.CmsgSpace(4*room))
	says := make([]byte, 1)
	n, controls, flags, _, err := c.conn.ReadMsgUnix(says, control)
	if err == nil && n == 0 {
		err = io.ErrUnexpectedEOF
	}
	messages, parseErr := unix.ParseSocketControlMessage(control[:controls])
	for i := range messages {
		fds, rightsErr := unix.ParseUnixRights(&messages[i])
		if rightsErr != nil {
			parseErr = errors.Join(parseErr, rightsErr)
			continue
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			c.files = append(c.files, handed(fd))
		}
	}
	switch {
	case err != nil || parseErr != nil:
		return fmt.Errorf("receive descriptors: %w", errors.Join(err, parseErr))
	case len(c.files) != want || flags&unix.MSG_CTRUNC != 0:
		return fmt.Errorf("%w: the caller hands over %d descriptors, not %d", ErrCommand, len(c.files), want)
	}
	for fd, file := range c.files {
		if err := fit(file); err != nil {
			return fmt.Errorf("%w: descriptor %d of the caller %w", ErrCommand, fd, err)
		}
		c.opens = c.opens || says[0]&takesTerminal != 0 && file.terminal()
	}
	c.logs = says[0]&takesLog != 0
	return nil
}

// What a client says, with its descriptors, that it takes. The host says it again with each descriptor that it passes on.
const (
	takesTerminal = 1 << iota // a terminal that the host opens
	takesLog                  // a pipe to the log, for what it shows
)

// giveTerminal passes the host's end of the program's terminal to the client.
func (c *caller) giveTerminal(terminal *os.File) error {
	defer closeFile(terminal)
	return c.give(takesTerminal, terminal)
}

// giveLog passes the end of a pipe to the log to the client.
func (c *caller) giveLog(pipe *os.File) error { return c.give(takesLog, pipe) }

// give passes a descriptor on to the client, and waits until that is ready: the program must not see a terminal without a size.
func (c *caller) give(what byte, file *os.File) error {
	if err := c.conn.SetDeadline(time.Now().Add(callerTime)); err != nil {
		return fmt.Errorf("pass descriptor on: %w", err)
	}
	_, _, err := c.conn.WriteMsgUnix([]byte{what}, unix.UnixRights(int(file.Fd())), nil)
	if err == nil {
		_, err = io.ReadFull(c.conn, make([]byte, 1))
	}
	if err = errors.Join(err, c.conn.SetDeadline(time.Time{})); err != nil {
		return fmt.Errorf("pass descriptor on: %w", err)
	}
	return nil
}

// Devices that a caller may hand over besides pseudo-terminals: null, zero, full, random, urandom.
var plainDevices = map[uint64]bool{
	unix.Mkdev(1, 3): true, unix.Mkdev(1, 5): true, unix.Mkdev(1, 7): true, unix.Mkdev(1, 8): true, unix.Mkdev(1, 9): true,
}

// fit returns an error that says what is wrong with a descriptor for a confined program: one that leads further than to what is
// read from it or written to it.
func fit(file handed) error {
	fd := int(file)
	flags, err := unix.FcntlInt(file.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return fmt.Errorf("has no flags: %w", err)
	}
	if flags&unix.O_PATH != 0 {
		return errors.New("is only a place in the file system (O_PATH)")
	}
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return fmt.Errorf("cannot be examined: %w", err)
	}
	switch info.Mode & unix.S_IFMT {
	case unix.S_IFREG, unix.S_IFIFO:
		return nil
	case unix.S_IFCHR:
		if !plainDevices[info.Rdev] && !isTerminal(info.Rdev) {
			return fmt.Errorf("is the device %d:%d", unix.Major(info.Rdev), unix.Minor(info.Rdev))
		}
		return nil
	case unix.S_IFSOCK:
		return fitSocket(fd)
	case unix.S_IFDIR:
		return errors.New("is a directory")
	case unix.S_IFBLK:
		return errors.New("is a block device")
	}
	return errors.New("is of a kind that a program cannot get")
}

// fitSocket refuses all sockets but one of an unnamed pair of streams: over others the program would reach what its sandbox forbids.
func fitSocket(fd int) error {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return fmt.Errorf("is a socket without a type: %w", err)
	}
	for _, call := range []uintptr{unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME} {
		var address unix.RawSockaddrAny
		length := uint32(unix.SizeofSockaddrAny)
		_, _, errno := unix.Syscall(call, uintptr(fd), uintptr(unsafe.Pointer(&address)), uintptr(unsafe.Pointer(&length)))
		const unnamed = 2 // the length of an address that is only a family
		if errno != 0 || kind != unix.SOCK_STREAM || address.Addr.Family != unix.AF_UNIX || length != unnamed {
			return errors.New("is a socket of the network or with a name: only unnamed pairs can be handed over")
		}
	}
	return nil
}

// isTerminal reports whether a device is the program's end of a pseudo-terminal.
func isTerminal(device uint64) bool {
	const first, last = 136, 143 // major numbers
	major := unix.Major(device)
	return major >= first && major <= last
}

// attend forwards the caller's signals to a program, and ends it when the caller has gone. It returns when the connection is closed.
func (c *caller) attend(p *Process) {
	var signals [16]byte
	for {
		n, err := c.conn.Read(signals[:])
		for _, number := range signals[:n] {
			p.forward(syscall.Signal(number))
		}
		if err != nil {
			break
		}
	}
	select {
	case <-p.done:
	default:
		p.Signal(syscall.SIGHUP)
		_ = p.Terminate(context.Background(), p.command.Grace) // the program ends in any case
	}
}

// forward sends a caller's signal to the agent. Those of keys are for its process group, others for the program.
// Others than these are not forwarded.
func (p *Process) forward(sig syscall.Signal) {
	switch sig {
	case syscall.SIGINT, syscall.SIGQUIT:
		p.Signal(sig)
	case syscall.SIGHUP, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2:
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.first != 0 && !p.reaped && !p.watched.over() {
			_ = syscall.Kill(p.first, sig) // as in signalLocked
		}
	case syscall.SIGSTOP, syscall.SIGCONT:
		if sig == syscall.SIGCONT {
			p.caller.waits.Store(false)
		}
		s := &p.suspension
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.on && !p.halts() { // the kernel decides about an agent that it has stopped
			p.Signal(sig)
		}
	}
}

// stopped tells the caller that the program was stopped by a key or by itself, so that the caller can stop too, and its shell goes
// on.
func (p *Process) stopped() {
	if p.caller == nil || p.caller.deaf || p.caller.waits.Load() {
		return
	}
	s := &p.suspension
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.on || p.halts() || !isStopped(p.OSPID()) { // the kernel has stopped it, or did so for a moment
		return
	}
	p.caller.waits.Store(true)
	err := p.caller.conn.SetWriteDeadline(time.Now().Add(time.Second))
	if err == nil {
		_, err = p.caller.conn.Write([]byte{byte(syscall.SIGTSTP)})
	}
	p.caller.deaf = err != nil
}

// isStopped reports whether a process is stopped, also by ptrace.
func isStopped(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	state := bytes.LastIndexByte(stat, ')') + len(") ")
	return state < len(stat) && (stat[state] == 'T' || stat[state] == 't')
}

// close closes the connection and descriptors that no program has got.
func (c *caller) close() error {
	errs := []error{c.conn.Close()} // which tells a client that is continued that it need not stop again
	if c.process >= 0 {
		if c.waits.Load() {
			_ = unix.PidfdSendSignal(c.process, unix.SIGCONT, nil, 0) // it may have ended, or be user 0
		}
		errs = append(errs, unix.Close(c.process))
		c.process = -1
	}
	for _, file := range c.files {
		errs = append(errs, file.Close())
	}
	c.files = nil
	return errors.Join(errs...)
}
