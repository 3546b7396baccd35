package host

import (
	_ "unsafe" // go:linkname

	"golang.org/x/sys/unix"
)

// child is what a forked process becomes.
type child interface {
	// become makes system calls only, since nothing of Go's runtime works there, allocation included. It calls afterForkInChild before it
	// executes a program, and does not return.
	become()
}

// forked forks, which Go does only to execute a program at once. Signals are blocked meanwhile: their handlers are Go's.
//
//go:norace
//go:noinline
func forked(c child) (pid int, errno unix.Errno) {
	beforeFork()
	number, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || number != 0 {
		afterFork()
		return int(number), errno
	}
	c.become()
	return 0, 0
}

// These belong to package syscall. Go keeps their names for programs that fork, as containers' runtimes do.

//go:linkname beforeFork syscall.runtime_BeforeFork
func beforeFork()

//go:linkname afterFork syscall.runtime_AfterFork
func afterFork()

//go:linkname afterForkInChild syscall.runtime_AfterForkInChild
func afterForkInChild()
