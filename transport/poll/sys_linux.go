package poll

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls of the loop return at once, so they are made without telling Go's scheduler.
// Otherwise it takes the processor away when the system preempts the thread in one, as happens when
// a write wakes the peer, and continues the loop on another thread.

// sysRead reads once from fd, which does not block.
func sysRead(fd int, p []byte) (int, error) {
	return sys(unix.SYS_READ, fd, unsafe.Pointer(unsafe.SliceData(p)), len(p))
}

// sysWrite writes once to fd, which does not block.
func sysWrite(fd int, p []byte) (int, error) {
	return sys(unix.SYS_WRITE, fd, unsafe.Pointer(unsafe.SliceData(p)), len(p))
}

// sysPoll is epoll_wait without a wait.
func sysPoll(fd int, events []unix.EpollEvent) (int, error) {
	return sys(unix.SYS_EPOLL_PWAIT, fd, unsafe.Pointer(unsafe.SliceData(events)), len(events))
}

// sys makes the system call whose further arguments are 0.
func sys(trap uintptr, fd int, p unsafe.Pointer, length int) (int, error) {
	n, _, err := unix.RawSyscall6(trap, uintptr(fd), uintptr(p), uintptr(length), 0, 0, 0)
	if err != 0 {
		return 0, err
	}
	return int(n), nil
}

// blocks reports whether the system calls of fd may wait.
func blocks(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	return err != nil || flags&unix.O_NONBLOCK == 0
}
