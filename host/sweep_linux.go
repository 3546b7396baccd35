package host

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// sweep kills every listed process whose mark wants says, or is spoiled, and returns when none is left, with how many it
// killed. list is asked again until then: what a process forks before it dies carries the same mark. A process in an
// uninterruptible system call keeps it waiting, and so does a list that fails, because descriptors are missing for example: to give up would
// be to let one get away.
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

// kill kills a process if it still carries a mark that wants says, or a spoiled one. It reports whether the process was still
// there.
func kill(pid int, wants func(mark) bool, awaited func(pid int) bool) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return false
	}
	if err == nil {
		defer closeFD(fd)
	}
	// The descriptor was opened first: if the number has passed to another process since, the signal goes nowhere.
	if m, ok := markOf(pid); !ok || m != spoiled && !wants(m) || !bound(pid) {
		return false
	}
	if err != nil { // out of descriptors, which must not keep an agent alive
		return unix.Kill(pid, unix.SIGKILL) == nil
	}
	if ended(fd) {
		if awaited(pid) {
			return false // its parent reads its exit status
		}
		// We reap an orphan if the daemon is process 1, and a child made with CLONE_PARENT
		// anywhere. If it is not our child this fails, as it should.
		_ = unix.Waitid(unix.P_PIDFD, fd, nil, unix.WEXITED|unix.WNOHANG|unix.WALL, nil)
		return false
	}
	_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // ESRCH: it has just ended, which the next look finds
	return true
}

// ended reports whether a process, all its threads included, has ended. A first thread that ended alone looks like a
// zombie in /proc while the others run on; a pidfd is not deceived.
func ended(fd int) bool {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, 0)
	return err == nil && n == 1
}

// closeFD closes a descriptor that nothing was written to.
func closeFD(fd int) { _ = unix.Close(fd) }
