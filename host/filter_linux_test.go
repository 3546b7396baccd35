package host_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/host"
)

// TestReach: a confined program may change in every way how it runs itself, but not how others run: not the daemon, not
// another agent, not all processes of its user. It may read such values. A program that is not confined may do all of it.
func TestReach(t *testing.T) {
	t.Parallel()
	h, shared := open(t), openShared(t)
	if !host.MeansOf(h).Filter {
		t.Skip("this system has no system call filter")
	}
	other := start(t, h, shell(t, "read x"))
	strict(t, h)
	const init = 1
	for _, try := range []struct {
		host *host.Host
		mode host.Mode
		pids []int
	}{
		{shared, host.SandboxDefault, []int{os.Getpid(), other.OSPID(), 0}},
		{h, host.SandboxDefault, []int{init, 0}},
		{h, host.SandboxStrict, []int{init, 0}},
	} {
		for _, pid := range try.pids {
			c := helper(t, "t-reach", itoa(pid))
			c.Sandbox = try.mode
			lines := strings.Split(strings.TrimSuffix(output(t, try.host, c), "\n"), "\n")
			for _, line := range lines {
				what, came, _ := strings.Cut(line, ": ")
				want := "operation not permitted"
				if strings.HasPrefix(what, "read ") || pid == 0 && !strings.HasPrefix(what, "user's") {
					want = "ok"
				}
				if came != want {
					t.Errorf("%s of %d in %s: %s, want %s", what, pid, try.mode, came, want)
				}
			}
			if len(lines) != 10 {
				t.Errorf("%d in %s: %q", pid, try.mode, lines)
			}
		}
	}
	c := helper(t, "t-reach", itoa(other.OSPID()))
	c.Sandbox = host.SandboxOff
	if got := output(t, h, c); !strings.Contains(got, "\nlimit: ok\n") || !strings.Contains(got, "\nscheduler: ok\n") {
		t.Errorf("not confined: %q", got)
	}
}

// reach tries each way to change how a process runs, and to read that.
func reach(args []string) int {
	pid, _ := strconv.Atoi(args[0])
	const niceness, idle, process, user, bestEffort = 19, 5, 1, 3, 2<<13 | 7
	number := uintptr(pid)
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: idle}
	param := new(int32)
	for _, try := range []struct {
		what string
		err  func() error
	}{
		{"read limit", func() error { return unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &unix.Rlimit{}) }},
		{"limit", func() error {
			var limit unix.Rlimit
			if err := unix.Prlimit(pid, unix.RLIMIT_CORE, nil, &limit); err != nil {
				return err
			}
			return unix.Prlimit(pid, unix.RLIMIT_CORE, &limit, nil)
		}},
		{"read priority", func() error { _, err := unix.Getpriority(unix.PRIO_PROCESS, pid); return err }},
		{"priority", func() error { return unix.Setpriority(unix.PRIO_PROCESS, pid, niceness) }},
		{"priority of device", func() error { return call(unix.SYS_IOPRIO_SET, process, number, bestEffort) }},
		{"attributes", func() error { return unix.SchedSetAttr(pid, &attr, 0) }},
		{"scheduler", func() error { return call(unix.SYS_SCHED_SETSCHEDULER, number, idle, uintptr(unsafe.Pointer(param))) }},
		{"parameter", func() error { return call(unix.SYS_SCHED_SETPARAM, number, uintptr(unsafe.Pointer(param)), 0) }},
		// all processes of the user, with any number
		{"user's priority", func() error { return unix.Setpriority(unix.PRIO_USER, 1<<30, niceness) }},
		{"user's priority of device", func() error { return call(unix.SYS_IOPRIO_SET, user, 1<<30, bestEffort) }},
	} {
		said(try.what, try.err())
	}
	return 0
}

func call(number, a, b, c uintptr) error {
	if _, _, errno := unix.RawSyscall(number, a, b, c); errno != 0 {
		return errno
	}
	return nil
}
