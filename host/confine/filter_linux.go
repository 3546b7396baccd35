package confine

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The filter refuses system calls that neither mounts nor Landlock control: those that affect other processes, that lock or
// mark files of others (leases, extended attributes, setuid bits), that create namespaces, and those with a history of
// vulnerabilities that programs do not need. A filter sees numbers of processes, but not their owner: a call for another
// number than 0, the caller, is refused, even if it is the caller's own.

// Rules selects the parts of the filter that depend on the other means of confinement.
type Rules struct {
	Families Families
	Notify   bool // notify the daemon of chmod with the bit setgid, which is then allowed for directories
	Connect  bool // also of connect, and refuse what reaches a Unix socket by another call; with Notify only
	Execs    bool // notify it of execve; with Notify only
	IPC      bool // refuse SysV objects and message queues, if there is no IPC namespace
	Trace    bool // refuse ptrace
}

// Families are the sockets that a program may create.
type Families int

// The kinds of sockets.
const (
	// AnySocket is for a network that a network namespace, or nothing, confines: Unix, IPv4, IPv6, and the netlink socket
	// that lists addresses. It never allows vsock, which no network namespace confines.
	AnySocket Families = iota
	// StreamSocket allows only TCP over IPv4 and IPv6, which Landlock's rules for TCP cover.
	StreamSocket
	// UnixSocket allows no network.
	UnixSocket
)

// row is a system call with its rule. A number below 0 means that the machine does not have it.
type row struct {
	amd64, arm64 int
	rule         []unix.SockFilter
}

const (
	leaseCommand   = 1024 // F_SETLEASE
	notifyCommand  = 1026 // F_NOTIFY
	createFlags    = 0o100 | 0o20000000
	setuidBit      = 0o4000
	setgidBit      = 0o2000
	setidBits      = setuidBit | setgidBit
	typeMask       = 0xf
	fastOpen       = 0x20000000
	x32Bit         = 0x40000000
	priorityOfUser = 2
	ioPrioOfUser   = 3
)

// Results of the filter.
const (
	allowed     = unix.SECCOMP_RET_ALLOW
	refused     = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	unknown     = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	unsupported = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOTSUP)
	noFamily    = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)
)

// rows returns the calls that the filter checks. All others are allowed.
func (r Rules) rows() []row {
	no := []unix.SockFilter{answer(refused)}
	list := []row{
		{302, 261, limitRule()},               // prlimit64
		{141, 140, groupRule(priorityOfUser)}, // setpriority
		{251, 30, groupRule(ioPrioOfUser)},    // ioprio_set
		{144, 119, processRule()},             // sched_setscheduler
		{142, 118, processRule()},             // sched_setparam
		{314, 274, processRule()},             // sched_setattr
		{72, 25, []unix.SockFilter{ // fcntl
			load(arg(1)), when(leaseCommand, 2), when(notifyCommand, 1), answer(allowed), answer(refused),
		}},
		{90, -1, r.modeRule(1)},          // chmod
		{91, 52, r.modeRule(1)},          // fchmod
		{268, 53, r.modeRule(2)},         // fchmodat
		{452, 452, r.modeRule(2)},        // fchmodat2
		{85, -1, without(1, setidBits)},  // creat
		{133, -1, without(1, setidBits)}, // mknod
		{259, 33, without(2, setidBits)}, // mknodat
		{2, -1, createRule(1)},           // open
		{257, 56, createRule(2)},         // openat
		{56, 220, without(0, unix.CLONE_NEWUSER)},
	}
	all := func(rule []unix.SockFilter, numbers ...[2]int) {
		for _, n := range numbers {
			list = append(list, row{n[0], n[1], rule})
		}
	}
	// unshare, setns, process_vm_readv, process_vm_writev, pidfd_getfd, keyctl, add_key, request_key, bpf, perf_event_open
	all(no, [][2]int{{272, 97}, {308, 268}, {310, 270}, {311, 271}, {438, 438}, {250, 219}, {248, 217}, {249, 218}, {321, 280}, {298, 241}}...)
	// setxattr, lsetxattr, fsetxattr, removexattr, lremovexattr, fremovexattr, setxattrat, removexattrat
	all([]unix.SockFilter{answer(unsupported)}, [][2]int{{188, 5}, {189, 6}, {190, 7}, {197, 14}, {198, 15}, {199, 16}, {463, 463}, {466, 466}}...)
	// clone3, openat2, io_uring_setup, io_uring_enter, io_uring_register, userfaultfd, fanotify_init
	all([]unix.SockFilter{answer(unknown)}, [][2]int{{435, 435}, {437, 437}, {425, 425}, {426, 426}, {427, 427}, {323, 282}, {300, 262}}...)
	if r.IPC { // shmget, shmat, shmctl, semget, msgget, mq_open
		all(no, [][2]int{{29, 194}, {30, 196}, {31, 195}, {64, 190}, {68, 186}, {240, 180}}...)
	}
	if r.Trace {
		all(no, [2]int{101, 117})
	}
	list = append(list, row{41, 198, r.Families.rule(r.Connect)})
	if r.Connect || r.Families != AnySocket {
		all(pairRule(), [2]int{53, 199})
	}
	if r.Connect {
		all([]unix.SockFilter{answer(unix.SECCOMP_RET_USER_NOTIF)}, [2]int{42, 203})
		all(partRule(), [2]int{16, 29}) // ioctl
	}
	if r.Execs {
		all([]unix.SockFilter{answer(unix.SECCOMP_RET_USER_NOTIF)}, [2]int{59, 221}, [2]int{322, 281}) // execve, execveat
	}
	if r.Families != AnySocket {
		all(without(3, fastOpen), [2]int{44, 206}, [2]int{307, 269}) // sendto, sendmmsg
		all(without(2, fastOpen), [2]int{46, 211})                   // sendmsg
	}
	return list
}

// Program returns the filter for a machine, or nil.
//
// Only the machine's own calling convention is allowed: calls of another one (i386 or x32 on amd64, arm on arm64) fail as
// unknown, so only one list of numbers is needed.
func (r Rules) Program(arch string) []unix.SockFilter {
	var convention uint32
	switch arch {
	case "amd64":
		convention = unix.AUDIT_ARCH_X86_64
	case "arm64":
		convention = unix.AUDIT_ARCH_AARCH64
	default:
		return nil
	}
	all := []unix.SockFilter{load(atArch), when(convention, 1), answer(unknown), load(atNumber)}
	if arch == "amd64" {
		all = append(all, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, Jf: 1, K: x32Bit}, answer(unknown))
	}
	for _, row := range r.rows() {
		number := row.amd64
		if arch == "arm64" {
			number = row.arm64
		}
		if number >= 0 {
			all = append(append(all, unless(uint32(number), len(row.rule))), row.rule...)
		}
	}
	return append(all, answer(allowed))
}

// rule returns the rule of socket(2): family, type, protocol. With streams, Unix sockets may not be datagram sockets, which
// can send to every socket without connect.
func (s Families) rule(streams bool) []unix.SockFilter {
	netlink := []unix.SockFilter{unless(unix.AF_NETLINK, 4), load(arg(2)), unless(unix.NETLINK_ROUTE, 1), answer(allowed), answer(noFamily), answer(noFamily)}
	if s == AnySocket && !streams {
		return append([]unix.SockFilter{
			load(arg(0)), unless(unix.AF_UNIX, 1), answer(allowed), unless(unix.AF_INET, 1), answer(allowed), unless(unix.AF_INET6, 1), answer(allowed),
		}, netlink...)
	}
	kind := []unix.SockFilter{load(arg(1)), and(typeMask)}
	unixRule := append(kind[:2:2], when(unix.SOCK_STREAM, 1), unless(unix.SOCK_SEQPACKET, 1), answer(allowed), answer(refused))
	list := append([]unix.SockFilter{load(arg(0)), unless(unix.AF_UNIX, len(unixRule))}, unixRule...)
	if s == AnySocket {
		list = append(list, unless(unix.AF_INET, 1), answer(allowed), unless(unix.AF_INET6, 1), answer(allowed))
	}
	if s == StreamSocket {
		stream := append(kind[:2:2], unless(unix.SOCK_STREAM, 4), load(arg(2)), when(0, 1), unless(unix.IPPROTO_TCP, 1), answer(allowed), answer(refused))
		list = append(list, when(unix.AF_INET, 1), unless(unix.AF_INET6, len(stream)))
		list = append(list, stream...)
	}
	return append(list, netlink...)
}

// pairRule returns the rule of socketpair(2). It refuses datagram sockets, which could send to any socket with a path; a raw
// one is one of these.
func pairRule() []unix.SockFilter {
	return []unix.SockFilter{load(arg(1)), and(typeMask), when(unix.SOCK_STREAM, 1), unless(unix.SOCK_SEQPACKET, 1), answer(allowed), answer(refused)}
}

// partRule returns the rule of ioctl(2). It refuses to make parts of a btrfs (subvolumes), in which files have the numbers
// of other files.
func partRule() []unix.SockFilter {
	const snapshot, subvolume, snapshot2, subvolume2 = 0x50009401, 0x5000940e, 0x50009417, 0x50009418
	return []unix.SockFilter{
		load(arg(1)), when(snapshot, 4), when(subvolume, 3), when(snapshot2, 2), when(subvolume2, 1), answer(allowed), answer(refused),
	}
}

// without returns a rule that refuses a call if the argument has one of the bits.
func without(argument int, bits uint32) []unix.SockFilter {
	return []unix.SockFilter{load(arg(argument)), and(bits), unless(0, 1), answer(allowed), answer(refused)}
}

// modeRule returns the rule of a call that changes the mode of a file. Setgid is for directories, which only the daemon sees.
func (r Rules) modeRule(argument int) []unix.SockFilter {
	if !r.Notify {
		return without(argument, setidBits)
	}
	mode := []unix.SockFilter{load(arg(argument)), and(setuidBit), when(0, 1), answer(refused)}
	return append(mode, load(arg(argument)), and(setgidBit), unless(0, 1), answer(allowed), answer(unix.SECCOMP_RET_USER_NOTIF))
}

// createRule returns the rule of open and openat: flags, then the mode, which counts only if a file is created.
func createRule(flags int) []unix.SockFilter {
	return append([]unix.SockFilter{load(arg(flags)), and(createFlags), when(0, 3)}, without(flags+1, setidBits)...)
}

// processRule returns the rule of a call whose first argument is a process.
func processRule() []unix.SockFilter {
	return []unix.SockFilter{load(arg(0)), unless(0, 1), answer(allowed), answer(refused)}
}

// limitRule returns the rule of prlimit: process, resource, pointer to the new limit. Without a new limit the call only
// reads.
func limitRule() []unix.SockFilter {
	return []unix.SockFilter{
		load(arg(0)), when(0, 4),
		load(arg(2)), unless(0, 3),
		load(arg(2) + half), unless(0, 1),
		answer(allowed), answer(refused),
	}
}

// groupRule returns the rule of a call with a kind (process, group, user) and a number.
func groupRule(user uint32) []unix.SockFilter {
	return []unix.SockFilter{load(arg(1)), unless(0, 3), load(arg(0)), when(user, 1), answer(allowed), answer(refused)}
}

// Offsets of the loaded values in seccomp_data of a little-endian machine, in bytes.
const (
	atNumber = 0
	atArch   = 4
	atArgs   = 16
	half     = 4
)

// arg returns the offset of the low half of an argument.
func arg(n int) uint32 { return uint32(atArgs + 8*n) }

func load(at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
}

func and(mask uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: mask}
}

// unless skips the next n instructions unless the loaded value is value.
func unless(value uint32, n int) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: uint8(n), K: value}
}

// when skips the next n instructions if the loaded value is value.
func when(value uint32, n int) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: uint8(n), K: value}
}

func answer(with uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: with}
}

// canFilter reports whether this system can filter system calls.
func canFilter() bool {
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	return errno == 0 && Rules{}.Program(runtime.GOARCH) != nil
}

// canNotify reports whether this system has what Calls needs, and whether this process may use it.
func canNotify() bool {
	action := uint32(unix.SECCOMP_RET_USER_NOTIF)
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action))); errno != 0 {
		return false
	}
	// Without a filter the call fails, with EINVAL if a flag is not known.
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, notifyFlags, 0); errno != unix.EFAULT {
		return false
	}
	self, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return false
	}
	defer closeFD(self)
	fd, err := unix.PidfdGetfd(self, self, 0)
	if err != nil {
		return false
	}
	closeFD(fd)
	return listsSockets()
}

// notifyFlags make a filter whose notifications the daemon answers. A caller waits for the answer even if a signal arrives:
// otherwise it would repeat a connect that has succeeded.
const notifyFlags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV

// apply permanently filters the calls of this thread and of what it executes. PR_SET_NO_NEW_PRIVS must be set. With Notify
// it returns the descriptor of the notifications.
func (r Rules) apply() (listener int, err error) {
	filter := r.Program(runtime.GOARCH)
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: unsafe.SliceData(filter)}
	// Without the flag, Linux before 5.16 slows down every program with a filter, to mitigate attacks that work without a
	// filter too.
	var flags uintptr = unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW
	if r.Notify {
		flags |= notifyFlags
	}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(filter)
	if errno != 0 {
		return -1, fmt.Errorf("filter calls: %w", errno)
	}
	return int(fd), nil
}
