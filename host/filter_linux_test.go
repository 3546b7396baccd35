package host_test

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/host"
)

// TestReach: a confined program changes how it runs itself, in every way, and how nobody else does: not the daemon, not
// another agent, not all processes of its user. It may look. One that is not confined may do all of it.
func TestReach(t *testing.T) {
	t.Parallel()
	if host.FilterOf(runtime.GOARCH) == nil || contains(host.Gaps(), "needs seccomp") {
		t.Skip("calls cannot be filtered here")
	}
	h := open(t)
	other := start(t, h, shell(t, "read x"))
	for _, mode := range []host.Mode{host.SandboxDefault, host.SandboxStrict} {
		if mode == host.SandboxStrict {
			level(t, 3)
		}
		for _, pid := range []int{os.Getpid(), other.OSPID(), 0} {
			c := helper(t, "t-reach", itoa(pid))
			c.Sandbox = mode
			lines := strings.Split(strings.TrimSuffix(output(t, h, c), "\n"), "\n")
			for _, line := range lines {
				what, came, _ := strings.Cut(line, ": ")
				want := "operation not permitted"
				if strings.HasPrefix(what, "read ") || pid == 0 && !strings.HasPrefix(what, "user's") {
					want = "ok"
				}
				if came != want {
					t.Errorf("%s of %d in %s: %s, want %s", what, pid, mode, came, want)
				}
			}
			if len(lines) != 10 {
				t.Errorf("%d in %s: %q", pid, mode, lines)
			}
		}
	}
	c := helper(t, "t-reach", itoa(other.OSPID()))
	c.Sandbox = host.SandboxOff
	if got := output(t, h, c); !strings.Contains(got, "\nlimit: ok\n") || !strings.Contains(got, "\nscheduler: ok\n") {
		t.Errorf("not confined: %q", got)
	}
}

// reach tries to change how a process runs, in each way that there is, and to read how it does.
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
		// All of the user's, whatever the number.
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

func contains(list []string, part string) bool {
	return strings.Contains(strings.Join(list, "\n"), part)
}

// TestFilter: what the filter answers, on each kind of machine and by each way to call the kernel, which no one machine could
// be asked. Arguments are of 64 bits, numbers of processes of 32.
func TestFilter(t *testing.T) {
	t.Parallel()
	const (
		x32     = 1 << 30
		other   = 4711
		pointer = 1 << 40
	)
	allowed, refused := uint32(unix.SECCOMP_RET_ALLOW), unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM)
	for name, on := range map[string]struct {
		machine                                                 string
		arch, bit                                               uint32
		prlimit, priority, io, scheduler, param, attr, harmless uint32
	}{
		"amd64":        {"amd64", unix.AUDIT_ARCH_X86_64, 0, 302, 141, 251, 144, 142, 314, 203},
		"x32":          {"amd64", unix.AUDIT_ARCH_X86_64, x32, 302, 141, 251, 144, 142, 314, 97},
		"386 on amd64": {"amd64", unix.AUDIT_ARCH_I386, 0, 340, 97, 289, 156, 154, 351, 302},
		"arm64":        {"arm64", unix.AUDIT_ARCH_AARCH64, 0, 261, 140, 30, 119, 118, 274, 302},
		"arm on arm64": {"arm64", unix.AUDIT_ARCH_ARM, 0, 369, 97, 314, 156, 154, 380, 261},
	} {
		program := host.FilterOf(on.machine)
		for _, c := range []struct {
			what   string
			number uint32
			args   [3]uint64
			want   uint32
		}{
			{"own limit", on.prlimit, [3]uint64{0, 7, pointer}, allowed},
			{"own limit, half a number beside", on.prlimit, [3]uint64{1 << 32, 7, pointer}, allowed},
			{"limit read", on.prlimit, [3]uint64{other, 7, 0}, allowed},
			{"limit", on.prlimit, [3]uint64{other, 7, 16}, refused},
			{"limit, high pointer", on.prlimit, [3]uint64{other, 7, pointer}, refused},
			{"own priority", on.priority, [3]uint64{0, 0, 19}, allowed},
			{"own group's priority", on.priority, [3]uint64{1, 0, 19}, allowed},
			{"user's priority", on.priority, [3]uint64{2, 0, 19}, refused},
			{"priority", on.priority, [3]uint64{0, other, 19}, refused},
			{"own io priority", on.io, [3]uint64{1, 0, 7}, allowed},
			{"group's io priority", on.io, [3]uint64{2, 0, 7}, allowed},
			{"user's io priority", on.io, [3]uint64{3, 0, 7}, refused},
			{"io priority", on.io, [3]uint64{1, other, 7}, refused},
			{"own scheduler", on.scheduler, [3]uint64{0, 5, pointer}, allowed},
			{"scheduler", on.scheduler, [3]uint64{other, 5, pointer}, refused},
			{"parameter", on.param, [3]uint64{other, pointer}, refused},
			{"attributes", on.attr, [3]uint64{other, pointer}, refused},
			{"another call", on.harmless, [3]uint64{other, other, other}, allowed},
		} {
			if got := judged(t, program, c.number|on.bit, on.arch, c.args); got != c.want {
				t.Errorf("%s, %s: %#x, want %#x", name, c.what, got, c.want)
			}
		}
	}
	if got := judged(t, host.FilterOf("amd64"), 302, unix.AUDIT_ARCH_S390X, [3]uint64{}); got != unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS) {
		t.Errorf("a convention that the machine does not have: %#x", got)
	}
	if host.FilterOf("s390x") != nil {
		t.Error("there is a filter for a machine whose numbers are not known")
	}
}

// judged runs a filter as the kernel would, as far as these programs go.
func judged(t *testing.T, program []unix.SockFilter, number, arch uint32, args [3]uint64) uint32 {
	t.Helper()
	data := map[uint32]uint32{0: number, 4: arch}
	for i, a := range args {
		data[uint32(16+8*i)], data[uint32(20+8*i)] = uint32(a), uint32(a>>32)
	}
	var loaded uint32
	for at := 0; at < len(program); at++ {
		switch in := program[at]; in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			value, ok := data[in.K]
			if !ok {
				t.Fatalf("instruction %d loads what is not there: %d", at, in.K)
			}
			loaded = value
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			loaded &= in.K
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			if loaded == in.K {
				at += int(in.Jt)
			} else {
				at += int(in.Jf)
			}
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		default:
			t.Fatalf("instruction %d is unknown: %+v", at, in)
		}
	}
	t.Fatal("the program has no end")
	return 0
}
