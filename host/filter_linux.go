package host

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The filter refuses calls that change how other processes run: their resource limits, their priority, how they are
// scheduled. The kernel lets any process do that to all of its user's, and Landlock does not mind. A filter sees numbers
// alone, not whose they are: what names another process than "the caller" (0) is refused, one's own number too. Reading
// stays allowed. sched_setaffinity is left alone: threading libraries give it numbers of the caller's own threads.

// convention is a way to call the kernel: what it is called by, and the numbers of the calls in it.
type convention struct {
	arch uint32
	mask uint32 // of the number of a call, which bits count
	calls
}

type calls struct{ prlimit, setPriority, setIOPriority, setScheduler, setParam, setAttr uint32 }

const (
	everyBit = ^uint32(0)
	notX32   = ^uint32(0x40000000) // the calls of x32 have the number of the usual ones, and this bit
)

// conventions are all that a program can use on a machine, the native one first.
func conventions(arch string) []convention {
	switch arch {
	case "amd64":
		return []convention{
			{unix.AUDIT_ARCH_X86_64, notX32, calls{prlimit: 302, setPriority: 141, setIOPriority: 251, setScheduler: 144, setParam: 142, setAttr: 314}},
			{unix.AUDIT_ARCH_I386, everyBit, calls{prlimit: 340, setPriority: 97, setIOPriority: 289, setScheduler: 156, setParam: 154, setAttr: 351}},
		}
	case "arm64":
		return []convention{
			{unix.AUDIT_ARCH_AARCH64, everyBit, calls{prlimit: 261, setPriority: 140, setIOPriority: 30, setScheduler: 119, setParam: 118, setAttr: 274}},
			{unix.AUDIT_ARCH_ARM, everyBit, calls{prlimit: 369, setPriority: 97, setIOPriority: 314, setScheduler: 156, setParam: 154, setAttr: 380}},
		}
	}
	return nil
}

// Values that "which" has where it names a user's processes, all of them.
const (
	priorityOfUser   = 2
	ioPriorityOfUser = 3
)

// Where the filter finds what it judges, in bytes: seccomp_data of a little-endian machine.
const (
	atNumber = 0
	atArch   = 4
	atFirst  = 16 // low half of the first argument; the next ones follow, 8 bytes each
	half     = 4
)

// Answers of a filter.
const (
	allowed = unix.SECCOMP_RET_ALLOW
	refused = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	unknown = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

// filterOf is the filter for a machine; nil where there is none for it.
func filterOf(arch string) []unix.SockFilter {
	var all []unix.SockFilter
	for _, c := range conventions(arch) {
		rules := c.rules()
		all = append(all, load(atArch), unless(c.arch, len(rules)))
		all = append(all, rules...)
	}
	if all == nil {
		return nil
	}
	return append(all, answer(unknown)) // no machine of the kind has another convention
}

// rules judge a call of the convention. Each rule is as long as what is jumped where the call is another.
func (c *convention) rules() []unix.SockFilter {
	list := []unix.SockFilter{load(atNumber), {Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: c.mask}}
	for _, r := range []struct {
		number uint32
		rule   []unix.SockFilter
	}{
		{c.prlimit, limitRule()},
		{c.setPriority, groupRule(priorityOfUser)},
		{c.setIOPriority, groupRule(ioPriorityOfUser)},
		{c.setScheduler, processRule()},
		{c.setParam, processRule()},
		{c.setAttr, processRule()},
	} {
		list = append(append(list, unless(r.number, len(r.rule))), r.rule...)
	}
	return append(list, answer(allowed))
}

// processRule is for a call whose first argument is a process.
func processRule() []unix.SockFilter {
	return []unix.SockFilter{load(atFirst), unless(0, 1), answer(allowed), answer(refused)}
}

// limitRule is for prlimit: process, resource, pointer to the new limit. What has no new limit only reads.
func limitRule() []unix.SockFilter {
	const limit = atFirst + 2*8
	return []unix.SockFilter{
		load(atFirst), when(0, 4),
		load(limit), unless(0, 3),
		load(limit + half), unless(0, 1),
		answer(allowed), answer(refused),
	}
}

// groupRule is for a call that says first what it names (a process, a group, a user), then which.
func groupRule(user uint32) []unix.SockFilter {
	return []unix.SockFilter{load(atFirst + 8), unless(0, 3), load(atFirst), when(user, 1), answer(allowed), answer(refused)}
}

func load(at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
}

// unless jumps over the next n instructions unless what was loaded is value.
func unless(value uint32, n int) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: uint8(n), K: value}
}

// when jumps over the next n instructions when what was loaded is value.
func when(value uint32, n int) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: uint8(n), K: value}
}

func answer(with uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: with}
}

// canFilter reports whether calls can be filtered here.
func canFilter() bool {
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	return errno == 0 && conventions(runtime.GOARCH) != nil
}

// filterCalls has the calls of this thread filtered, and those of what it executes, for good. PR_SET_NO_NEW_PRIVS must be set.
func filterCalls() error {
	filter := filterOf(runtime.GOARCH)
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: unsafe.SliceData(filter)}
	// Without the flag, kernels before 5.16 slow down every program that has a filter, against attacks that do not go by it.
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(filter)
	if errno != 0 {
		return fmt.Errorf("filter calls: %w", errno)
	}
	return nil
}
