package host

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bind makes this process end with the daemon, and closes all descriptors except for the given ones.
func (o order) bind() error {
	if err := o.tie(); err != nil {
		return err
	}
	// When memory runs out, an agent should be killed before the daemon. A failure does no harm.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0)
	// The daemon's own descriptors are close-on-exec; those of a library or of the daemon's parent may not be. The status
	// descriptor is the one above the program's.
	err := unix.CloseRange(uint(o.status), ^uint(0)>>32, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	// Linux before 5.11.
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("close descriptors: %w", err)
	}
	for _, entry := range open {
		var fd int
		if _, err := fmt.Sscan(entry.Name(), &fd); err == nil && fd >= o.status {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// tie makes the system kill this process when the daemon dies.
func (o order) tie() error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("bind to the daemon's life: %w", err)
	}
	// If the daemon died before that call, no signal follows. Its number is unknown in a PID namespace, but nobody reads the status then.
	poll := []unix.PollFd{{Fd: int32(o.status)}}
	if _, err := unix.Poll(poll, 0); err != nil || poll[0].Revents != 0 {
		return fmt.Errorf("the daemon has ended: %w", unix.ESRCH)
	}
	return nil
}

// wear removes all privileges from this process and marks it. The first is needed for the second, since a privileged
// process may raise a limit again.
func (o order) wear() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("forgo new privileges: %w", err)
	}
	if err := o.mark.wear(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("drop ambient capabilities: %w", err)
	}
	// With no new privileges, execve gives nothing back, not even to user 0.
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}

// replace starts the process that becomes the program in a separate user namespace, and ends this one.
//
// Only a fork can create a user namespace for a process with several threads, such as this one. Go forks slowly with one
// (it copies the page tables), so this small process does it instead of the daemon. The new process is a child of the
// daemon, not of this process.
func (o order) replace() error {
	next := o
	next.born = 0
	attr := &syscall.ProcAttr{Env: shimEnv(), Sys: &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_PARENT}}
	userNamespace(attr.Sys)
	if o.isolated() {
		attr.Sys.Cloneflags |= unix.CLONE_NEWPID
	}
	for fd := range o.born {
		attr.Files = append(attr.Files, uintptr(fd))
	}
	pid, err := syscall.ForkExec("/proc/self/exe", append([]string{shimArg, shimArg}, next.words()...), attr)
	if err != nil {
		return fmt.Errorf("make user namespace: %w", err)
	}
	if _, err := unix.Write(o.born, strconv.AppendInt(nil, int64(pid), 10)); err != nil {
		return fmt.Errorf("tell the daemon: %w", err)
	}
	syscall.Exit(0) // os.Exit would wait for a second with the race detector
	return nil
}

// enter creates the namespaces and changes to the program's user.
func (o order) enter() error {
	if o.plan != nil {
		if err := o.plan.Enter(); err != nil {
			return err
		}
	}
	if o.uid < 0 {
		return nil
	}
	for fd := range o.status {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO && unnamed(fd) {
			if err := unix.Fchown(fd, o.uid, o.gid); err != nil { // it may open /dev/stdout again
				return fmt.Errorf("give channel to user %d: %w", o.uid, err)
			}
		}
	}
	groups := make([]uint32, 0, len(o.groups)+1)
	for _, group := range o.groups {
		groups = append(groups, uint32(group))
	}
	uid, gid := uintptr(o.uid), uintptr(o.gid)
	// Raw calls apply only to this thread, which is the one that calls execve.
	for _, call := range []struct{ number, a, b, c uintptr }{
		{unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(unsafe.Pointer(unsafe.SliceData(groups))), 0},
		{unix.SYS_SETRESGID, gid, gid, gid},
		{unix.SYS_SETRESUID, uid, uid, uid},
	} {
		if _, _, errno := unix.RawSyscall(call.number, call.a, call.b, call.c); errno != 0 {
			return fmt.Errorf("become user %d: %w", o.uid, errno)
		}
	}
	runtime.KeepAlive(groups)
	return o.tie() // the change of the user has undone it
}

// unnamed reports whether a pipe has no path, as a FIFO has, which belongs to the user who made it.
func unnamed(fd int) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(fd, &fs) == nil && fs.Type == unix.PIPEFS_MAGIC
}

// restrict applies the restrictions that need no_new_privs, and waits until the daemon serves what it is handed.
func (o order) restrict() error {
	if o.plan == nil {
		return nil
	}
	if err := o.plan.Restrict(); err != nil {
		return err
	}
	if o.hand == 0 {
		return nil
	}
	return o.plan.HandOver(o.hand)
}

// limit sets the resource limits except for that on memory.
func (o order) limit() error {
	for _, l := range []struct {
		resource   int
		soft, hard int64
		set        bool
	}{
		{unix.RLIMIT_CORE, 0, 0, true},
		// KILL follows a second later, so that programs can handle XCPU.
		{unix.RLIMIT_CPU, o.cpu, o.cpu + 1, o.cpu > 0},
		{unix.RLIMIT_NOFILE, o.files, o.files, o.files > 0},
	} {
		if !l.set {
			continue
		}
		if err := lower(l.resource, uint64(l.soft), uint64(l.hard)); err != nil {
			return fmt.Errorf("set limit %d to %d: %w", l.resource, l.soft, err)
		}
	}
	return nil
}

// lower sets a limit, unless the present one is lower.
func lower(resource int, soft, most uint64) error {
	now, err := hard(0, resource)
	if err != nil {
		return err
	}
	return unix.Prlimit(0, resource, &unix.Rlimit{Cur: min(soft, now), Max: min(most, now)}, nil)
}
