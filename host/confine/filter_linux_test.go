package confine_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/host/confine"
)

// TestFilter shows the results of the filter on each kind of machine, which cannot be tested on one machine. Arguments have
// 64 bits, numbers of processes and flags 32.
func TestFilter(t *testing.T) {
	t.Parallel()
	const (
		other   = 4711
		pointer = 1 << 40
		eperm   = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
		enosys  = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
		enotsup = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOTSUP)
		noFam   = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)
		notify  = uint32(unix.SECCOMP_RET_USER_NOTIF)
		ok      = uint32(unix.SECCOMP_RET_ALLOW)
		absent  = -1
	)
	plain, bare := confine.Rules{}, confine.Rules{Families: confine.UnixSocket, IPC: true, Trace: true}
	streams, notified := confine.Rules{Families: confine.StreamSocket}, confine.Rules{Notify: true, Connect: true}
	for _, c := range []struct {
		what         string
		amd64, arm64 int
		args         []uint64
		want         uint32
		rules        confine.Rules
	}{
		{"own limit", 302, 261, []uint64{0, 7, pointer}, ok, plain},
		{"own limit, half a number beside", 302, 261, []uint64{1 << 32, 7, pointer}, ok, plain},
		{"limit read", 302, 261, []uint64{other, 7, 0}, ok, plain},
		{"limit", 302, 261, []uint64{other, 7, 16}, eperm, plain},
		{"limit, high pointer", 302, 261, []uint64{other, 7, pointer}, eperm, plain},
		{"own priority", 141, 140, []uint64{0, 0, 19}, ok, plain},
		{"own group's priority", 141, 140, []uint64{1, 0, 19}, ok, plain},
		{"user's priority", 141, 140, []uint64{2, 0, 19}, eperm, plain},
		{"priority", 141, 140, []uint64{0, other, 19}, eperm, plain},
		{"own io priority", 251, 30, []uint64{1, 0, 7}, ok, plain},
		{"user's io priority", 251, 30, []uint64{3, 0, 7}, eperm, plain},
		{"own scheduler", 144, 119, []uint64{0, 5, pointer}, ok, plain},
		{"scheduler", 144, 119, []uint64{other, 5, pointer}, eperm, plain},
		{"parameter", 142, 118, []uint64{other, pointer}, eperm, plain},
		{"attributes", 314, 274, []uint64{other, pointer}, eperm, plain},
		{"lock", 72, 25, []uint64{3, unix.F_SETLK}, ok, plain},
		{"lease", 72, 25, []uint64{3, 1024}, eperm, plain},
		{"notify", 72, 25, []uint64{3, 1026}, eperm, plain},
		{"chmod", 90, absent, []uint64{pointer, 0o755}, ok, plain},
		{"chmod setuid", 90, absent, []uint64{pointer, 0o4755}, eperm, plain},
		{"fchmod", 91, 52, []uint64{3, 0o1777}, ok, plain},
		{"fchmod setgid", 91, 52, []uint64{3, 0o2755}, eperm, plain},
		{"notified: chmod", 90, absent, []uint64{pointer, 0o1755}, ok, notified},
		{"notified: chmod setgid", 90, absent, []uint64{pointer, 0o2755}, notify, notified},
		{"notified: fchmod setgid", 91, 52, []uint64{3, 0o2755}, notify, notified},
		{"notified: fchmodat setgid", 268, 53, []uint64{3, pointer, 0o2755}, notify, notified},
		{"notified: fchmodat2 both", 452, 452, []uint64{3, pointer, 0o6755}, eperm, notified},
		{"notified: creat setgid", 85, absent, []uint64{pointer, 0o2755}, eperm, notified},
		{"fchmodat setuid", 268, 53, []uint64{3, pointer, 0o4755}, eperm, plain},
		{"fchmodat2 setuid", 452, 452, []uint64{3, pointer, 0o4755}, eperm, plain},
		{"creat setuid", 85, absent, []uint64{pointer, 0o4755}, eperm, plain},
		{"mknod setuid", 133, absent, []uint64{pointer, 0o104755}, eperm, plain},
		{"mknod fifo", 133, absent, []uint64{pointer, 0o10644}, ok, plain},
		{"mknodat setuid", 259, 33, []uint64{3, pointer, 0o104755}, eperm, plain},
		{"open", 2, absent, []uint64{pointer, 0, 0o6755}, ok, plain},
		{"open creating", 2, absent, []uint64{pointer, 0o101, 0o644}, ok, plain},
		{"open creating setuid", 2, absent, []uint64{pointer, 0o101, 0o4755}, eperm, plain},
		{"openat creating setuid", 257, 56, []uint64{3, pointer, 0o100, 0o4755}, eperm, plain},
		{"openat temporary setuid", 257, 56, []uint64{3, pointer, 0o20200001, 0o4755}, eperm, plain},
		{"openat reading", 257, 56, []uint64{3, pointer, 0, 0o4755}, ok, plain},
		{"clone", 56, 220, []uint64{17 | unix.CLONE_VM}, ok, plain},
		{"clone user namespace", 56, 220, []uint64{unix.CLONE_NEWUSER}, eperm, plain},
		{"clone3", 435, 435, nil, enosys, plain},
		{"unshare", 272, 97, nil, eperm, plain},
		{"setns", 308, 268, nil, eperm, plain},
		{"process_vm_readv", 310, 270, nil, eperm, plain},
		{"process_vm_writev", 311, 271, nil, eperm, plain},
		{"pidfd_getfd", 438, 438, nil, eperm, plain},
		{"keyctl", 250, 219, nil, eperm, plain},
		{"add_key", 248, 217, nil, eperm, plain},
		{"request_key", 249, 218, nil, eperm, plain},
		{"bpf", 321, 280, nil, eperm, plain},
		{"perf_event_open", 298, 241, nil, eperm, plain},
		{"setxattr", 188, 5, nil, enotsup, plain},
		{"lsetxattr", 189, 6, nil, enotsup, plain},
		{"fsetxattr", 190, 7, nil, enotsup, plain},
		{"removexattr", 197, 14, nil, enotsup, plain},
		{"lremovexattr", 198, 15, nil, enotsup, plain},
		{"fremovexattr", 199, 16, nil, enotsup, plain},
		{"setxattrat", 463, 463, nil, enotsup, plain},
		{"removexattrat", 466, 466, nil, enotsup, plain},
		{"io_uring_setup", 425, 425, nil, enosys, plain},
		{"openat2", 437, 437, nil, enosys, plain},
		{"userfaultfd", 323, 282, nil, enosys, plain},
		{"fanotify_init", 300, 262, nil, enosys, plain},
		{"shmget", 29, 194, nil, ok, plain},
		{"shmget without namespace", 29, 194, nil, eperm, bare},
		{"semget without namespace", 64, 190, nil, eperm, bare},
		{"msgget without namespace", 68, 186, nil, eperm, bare},
		{"mq_open without namespace", 240, 180, nil, eperm, bare},
		{"ptrace", 101, 117, nil, ok, plain},
		{"ptrace, strict", 101, 117, nil, eperm, bare},
		{"socket unix", 41, 198, []uint64{1, 2, 0}, ok, plain},
		{"socket udp", 41, 198, []uint64{2, 2, 0}, ok, plain},
		{"socket ipv6", 41, 198, []uint64{10, 1, 6}, ok, plain},
		{"socket netlink route", 41, 198, []uint64{16, 3, 0}, ok, plain},
		{"socket netlink audit", 41, 198, []uint64{16, 3, 9}, noFam, plain},
		{"socket packet", 41, 198, []uint64{17, 3, 0}, noFam, plain},
		{"socket alg", 41, 198, []uint64{38, 5, 0}, noFam, plain},
		{"socket vsock", 41, 198, []uint64{40, 1, 0}, noFam, plain},
		{"unix only: stream", 41, 198, []uint64{1, 1 | unix.SOCK_CLOEXEC, 0}, ok, bare},
		{"unix only: datagram", 41, 198, []uint64{1, 2, 0}, eperm, bare},
		{"unix only: tcp", 41, 198, []uint64{2, 1, 0}, noFam, bare},
		{"unix only: pair of datagrams", 53, 199, []uint64{1, 2, 0}, eperm, bare},
		{"unix only: raw pair", 53, 199, []uint64{1, 3, 0}, eperm, bare},
		{"unix only: pair", 53, 199, []uint64{1, 1, 0}, ok, bare},
		{"pair of datagrams", 53, 199, []uint64{1, 2, 0}, ok, plain},
		{"connect", 42, 203, []uint64{3, pointer, 16}, ok, plain},
		{"notified: connect", 42, 203, []uint64{3, pointer, 16}, notify, notified},
		{"notified: unix stream", 41, 198, []uint64{1, 1, 0}, ok, notified},
		{"notified: unix packets", 41, 198, []uint64{1, 5, 0}, ok, notified},
		{"notified: unix datagram", 41, 198, []uint64{1, 2, 0}, eperm, notified},
		{"notified: unix raw", 41, 198, []uint64{1, 3, 0}, eperm, notified},
		{"notified: udp", 41, 198, []uint64{2, 2, 0}, ok, notified},
		{"notified: ipv6", 41, 198, []uint64{10, 1, 6}, ok, notified},
		{"notified: netlink route", 41, 198, []uint64{16, 3, 0}, ok, notified},
		{"notified: netlink audit", 41, 198, []uint64{16, 3, 9}, noFam, notified},
		{"notified: vsock", 41, 198, []uint64{40, 1, 0}, noFam, notified},
		{"notified: raw pair", 53, 199, []uint64{1, 3, 0}, eperm, notified},
		{"notified: pair", 53, 199, []uint64{1, 1, 0}, ok, notified},
		{"notified: make subvolume", 16, 29, []uint64{3, 0x50009418}, eperm, notified},
		{"notified: size of terminal", 16, 29, []uint64{3, 0x5413}, ok, notified},
		{"execve", 59, 221, []uint64{pointer, pointer, pointer}, ok, notified},
		{"told of execve", 59, 221, []uint64{pointer, pointer, pointer}, notify, confine.Rules{Notify: true, Execs: true}},
		{"told of execveat", 322, 281, []uint64{3, pointer, pointer, pointer, 0}, notify, confine.Rules{Notify: true, Execs: true}},
		{"streams: tcp", 41, 198, []uint64{2, 1 | unix.SOCK_NONBLOCK, 0}, ok, streams},
		{"streams: tcp by number", 41, 198, []uint64{10, 1, 6}, ok, streams},
		{"streams: mptcp", 41, 198, []uint64{2, 1, 262}, eperm, streams},
		{"streams: udp", 41, 198, []uint64{2, 2, 0}, eperm, streams},
		{"streams: unix datagram", 41, 198, []uint64{1, 2, 0}, eperm, streams},
		{"streams: fast open", 44, 206, []uint64{3, pointer, 1, 0x20000000}, eperm, streams},
		{"streams: fast open by message", 46, 211, []uint64{3, pointer, 0x20000040}, eperm, streams},
		{"streams: send", 46, 211, []uint64{3, pointer, 0x40}, ok, streams},
		{"another call", 39, 172, []uint64{other, other, other}, ok, bare},
	} {
		for _, on := range []struct {
			machine string
			arch    uint32
			number  int
		}{{"amd64", unix.AUDIT_ARCH_X86_64, c.amd64}, {"arm64", unix.AUDIT_ARCH_AARCH64, c.arm64}} {
			if on.number == absent {
				continue
			}
			if got := judged(t, c.rules.Program(on.machine), uint32(on.number), on.arch, c.args); got != c.want {
				t.Errorf("%s, %s: %#x, want %#x", on.machine, c.what, got, c.want)
			}
		}
	}
	// With another calling convention of the machine all calls are unknown.
	for _, on := range []struct {
		machine      string
		arch, number uint32
	}{
		{"amd64", unix.AUDIT_ARCH_I386, 20},
		{"amd64", unix.AUDIT_ARCH_X86_64, 1<<30 | 39},
		{"amd64", unix.AUDIT_ARCH_S390X, 39},
		{"arm64", unix.AUDIT_ARCH_ARM, 20},
	} {
		if got := judged(t, plain.Program(on.machine), on.number, on.arch, nil); got != enosys {
			t.Errorf("%s, convention %#x: %#x, want ENOSYS", on.machine, on.arch, got)
		}
	}
	if plain.Program("s390x") != nil {
		t.Error("there is a filter for a machine whose numbers are not known")
	}
}

// judged runs a filter as the system would, as far as these programs need.
func judged(t *testing.T, program []unix.SockFilter, number, arch uint32, args []uint64) uint32 {
	t.Helper()
	data := map[uint32]uint32{0: number, 4: arch}
	for i := range uint32(6) {
		var a uint64
		if int(i) < len(args) {
			a = args[i]
		}
		data[16+8*i], data[20+8*i] = uint32(a), uint32(a>>32)
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
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			holds := loaded == in.K
			if in.Code == unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K {
				holds = loaded&in.K != 0
			}
			if holds {
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
