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

// bind ties this process to the daemon's life, and takes every descriptor from it but those it was given.
func (o order) bind() error {
	if err := o.tie(); err != nil {
		return err
	}
	// When memory runs out, an agent goes before the daemon. Where this is refused nothing is lost.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0)
	// The daemon's own are close-on-exec; what a library or the daemon's parent left open may not be. The status
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

// tie has this process killed when the daemon dies.
func (o order) tie() error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("bind to the daemon's life: %w", err)
	}
	// A daemon that died before that call sends nothing.
	if parent := os.Getppid(); parent != o.parent {
		return fmt.Errorf("parent is %d, not the daemon: %w", parent, unix.ESRCH)
	}
	return nil
}

// wear takes all privileges from this process and marks it. Without the first the second would not hold: a privileged
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
	// With no new privileges, not even user 0 gets back at execve what it does not hold before.
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}

// replace starts the process that becomes the program, in a user namespace of its own, and ends this one.
//
// Only a fork can make a user namespace for a program with several threads, as this one is. Go forks slowly with one (it copies
// the page tables), so that this small process does it and not the daemon. The new process is the daemon's child, not
// this one's.
func (o order) replace() error {
	next := o
	next.born = 0
	attr := &syscall.ProcAttr{Env: []string{childVar + "=1"}, Sys: &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_PARENT}}
	userNamespace(attr.Sys)
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
	syscall.Exit(0) // os.Exit would have everybody wait for a second where the race detector is built in
	return nil
}

// enter makes the namespaces and becomes the program's user.
func (o order) enter() error {
	if o.plan != nil {
		if err := o.plan.Enter(o.hand); err != nil {
			return err
		}
	}
	if o.uid < 0 {
		return nil
	}
	for fd := range o.status {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO {
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
	// Raw calls are this thread's alone, which is the one that execs.
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
	return o.tie() // which the change of user has undone
}

// restrict takes what can be taken only from a process without privileges to come.
func (o order) restrict() error {
	if o.plan == nil {
		return nil
	}
	return o.plan.Restrict()
}

// limitMemory sets the limit of memory, in a way that gives the scheduler no occasion to start a thread.
//
// RLIMIT_DATA bounds memory rather than RLIMIT_AS: it counts what a program can write to and nobody else sees, while
// RLIMIT_AS counts address space, of which Go, Node and Java reserve many gigabytes that they never use. It does not
// count shared memory, and counts stacks of threads in full. RLIMIT_NPROC is not among them: it counts all processes of a
// user, whoever's agents they are, and none of user 0's; the host counts for itself.
func (o order) limitMemory() error {
	if o.memory == 0 {
		return nil
	}
	now, err := hard(0, unix.RLIMIT_DATA)
	if err != nil {
		return err
	}
	value := min(uint64(o.memory), now)
	limit := &unix.Rlimit{Cur: value, Max: value}
	_, _, errno := unix.RawSyscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_DATA, uintptr(unsafe.Pointer(limit)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("set limit of memory to %d: %w", o.memory, errno)
	}
	return nil
}

// limit sets the resource limits but that of memory.
func (o order) limit() error {
	for _, l := range []struct {
		resource   int
		soft, hard int64
		set        bool
	}{
		{unix.RLIMIT_CORE, 0, 0, true},
		// A second more until KILL, for those that want to say something when XCPU comes.
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

// lower sets a limit, or leaves it where what is in force is less already.
func lower(resource int, soft, most uint64) error {
	now, err := hard(0, resource)
	if err != nil {
		return err
	}
	return unix.Prlimit(0, resource, &unix.Rlimit{Cur: min(soft, now), Max: min(most, now)}, nil)
}
