package host

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// rssUnit returns the unit in which the system counts memory in use, in bytes.
func rssUnit() int64 { return 1024 }

// itself returns the path of the running program, also if its file was replaced.
func itself() (string, error) { return "/proc/self/exe", nil }

// watched is a child whose end is awaited without a thread: its pidfd becomes readable.
type watched struct {
	pid  int
	fd   int
	file *os.File
}

// newWatched requests a pidfd from the fork.
func newWatched(attr *syscall.SysProcAttr) *watched {
	w := &watched{fd: -1}
	attr.PidFD = &w.fd
	return w
}

// begin stores the forked child.
func (w *watched) begin(pid int) error {
	w.pid = pid
	if w.fd < 0 {
		return fmt.Errorf("%w: no pidfd, which came with Linux 5.4", ErrUnsupported)
	}
	if err := unix.SetNonblock(w.fd, true); err != nil { // otherwise the file would not be polled
		return errors.Join(err, unix.Close(w.fd))
	}
	w.file = os.NewFile(uintptr(w.fd), "pidfd")
	return nil
}

// wait returns when the child has ended. The child is not reaped, so its number, and that of its group, are not reused.
func (w *watched) wait() {
	raw, err := w.file.SyscallConn()
	if err == nil {
		err = raw.Read(func(fd uintptr) bool { return ended(int(fd)) })
	}
	if err == nil {
		return
	}
	// It cannot be polled: wait in a thread.
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, w.pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// reap reaps a child that has ended.
func (w *watched) reap() (status syscall.WaitStatus, usage syscall.Rusage) {
	for {
		_, err := syscall.Wait4(w.pid, &status, 0, &usage)
		if !errors.Is(err, syscall.EINTR) {
			closeFile(w.file)
			return status, usage
		}
	}
}
