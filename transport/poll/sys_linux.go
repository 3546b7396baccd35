package poll

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls of the loop never block, so they are made without Go's scheduler. With it, a loop whose thread is
// preempted in a system call, as when a write wakes the peer, would lose its processor and continue on another thread.

// sysRead reads once from fd, which does not block.
func sysRead(fd int, p []byte) (int, error) {
	return sys(unix.SYS_READ, fd, unsafe.Pointer(unsafe.SliceData(p)), len(p))
}

// sysWrite writes once to fd, which does not block.
func sysWrite(fd int, p []byte) (int, error) {
	return sys(unix.SYS_WRITE, fd, unsafe.Pointer(unsafe.SliceData(p)), len(p))
}

// sysPoll is epoll_wait with a timeout of 0.
func sysPoll(fd int, events []unix.EpollEvent) (int, error) {
	return sys(unix.SYS_EPOLL_PWAIT, fd, unsafe.Pointer(unsafe.SliceData(events)), len(events))
}

// sys makes a system call with these arguments and zeros.
func sys(trap uintptr, fd int, p unsafe.Pointer, length int) (int, error) {
	n, _, err := unix.RawSyscall6(trap, uintptr(fd), uintptr(p), uintptr(length), 0, 0, 0)
	if err != 0 {
		return 0, err
	}
	return int(n), nil
}

// blocks reports whether the system calls of fd may block.
func blocks(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	return err != nil || flags&unix.O_NONBLOCK == 0
}
