package main

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// canHandOver reports whether this system's kernels take over standard input, output and error.
const canHandOver = true

// canBecome reports whether a kernel with this process's rights can run a confined program as another user: it mounts what that user
// cannot reach.
func canBecome() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	const needed = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_CHOWN
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&needed == needed
}

// dieOf ends this process by a signal, as its program has ended, so that a shell or make sees that. It returns if that fails. Go's own
// handlers would print a trace for some signals, and a core would be this process's.
func dieOf(sig syscall.Signal) {
	var action [4]uint64 // the default one
	_ = unix.Prlimit(0, unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	_ = unix.Kill(unix.Getpid(), sig)
	time.Sleep(time.Second) // until another thread has got it
}
