package host

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// sweep kills every listed process whose mark is broken, or for which wants is true, and returns their number when none is
// left. It calls list again until then, since the child of a killed process has the same mark. It waits for a process in an
// uninterruptible system call, and for a list that fails, for example because no descriptor is left: otherwise a process
// could escape.
func sweep(list func() ([]int, error), wants func(mark) bool, awaited func(pid int) bool, but int) int {
	killed := map[int]bool{}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		pids, err := list()
		left := 0
		if err != nil {
			left++
		}
		for _, pid := range pids {
			if pid != but && kill(pid, wants, awaited) {
				killed[pid] = true
				left++
			}
		}
		if left == 0 {
			return len(killed)
		}
		time.Sleep(pause)
	}
}

// kill kills a process whose mark is broken, or for which wants is true. It reports whether the process still existed.
func kill(pid int, wants func(mark) bool, awaited func(pid int) bool) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return false
	}
	if err == nil {
		defer closeFD(fd)
	}
	// The descriptor was opened first: if the number belongs to another process by then, the signal is not delivered.
	if m, ok := markOf(pid); !ok || m != spoiled && !wants(m) || !bound(pid) {
		return false
	}
	if err != nil { // no descriptor is left, which must not keep an agent alive
		return unix.Kill(pid, unix.SIGKILL) == nil
	}
	if ended(fd) {
		if awaited(pid) {
			return false // its parent reads its exit status
		}
		// This process reaps an orphan if the daemon is process 1, and a child created with CLONE_PARENT anywhere. For
		// processes that are not its children this fails.
		_ = unix.Waitid(unix.P_PIDFD, fd, nil, unix.WEXITED|unix.WNOHANG|unix.WALL, nil)
		return false
	}
	_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // ESRCH: it has just ended, which the next search finds
	return true
}

// ended reports whether a process has ended with all its threads. In /proc, a first thread that ended alone looks like a
// zombie while the others run; a pidfd does not have this problem.
func ended(fd int) bool {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, 0)
	return err == nil && n == 1
}

// closeFD closes a descriptor that was not written to.
func closeFD(fd int) { _ = unix.Close(fd) }
