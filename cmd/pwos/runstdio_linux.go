package main

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// canHandOver reports whether this system's kernels take over standard input, output and error.
const canHandOver = true

// dieOf ends this process by a signal, as its program has ended, so that a shell or make sees that. It returns if that fails. Go's own
// handlers would print a trace for some signals, and a core would be this process's.
func dieOf(sig syscall.Signal) {
	var action [4]uint64 // the default one
	_ = unix.Prlimit(0, unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	_ = unix.Kill(unix.Getpid(), sig)
	time.Sleep(time.Second) // until another thread has got it
}
