package host

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// rssUnit returns the unit in which the system counts memory in use, in bytes.
func rssUnit() int64 { return 1024 }

// itself returns the path of the running program, also if its file was replaced.
func itself() (string, error) { return "/proc/self/exe", nil }

// watched is a child whose end is awaited without a thread: its pidfd becomes readable. If it is the init of a program, the program's
// end is awaited, and its own follows.
type watched struct {
	pid     int
	fd      int
	file    *os.File
	reports *net.UnixConn // of an init, or nil
	end     *report       // the program's, or nil
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

// program returns 0: the child is the init of the program, whose number it reports.
func (w *watched) program() int { return 0 }

// over reports whether an init has ended, and the program's number may be reused.
func (w *watched) over() bool { return w.reports != nil && ended(w.fd) }

// hurry bounds the time in which an init tells the end of its program, which was killed.
func (w *watched) hurry() {
	if w.reports != nil {
		_ = w.reports.SetReadDeadline(time.Now().Add(lastWords)) // fails after the end
	}
}

// hear calls f with the reports of an init until its program has ended, with that, or the init has. It kills one that does not tell the
// end in time: a program can stop its init where both are in one PID namespace.
func (w *watched) hear(f func(r report, sender int)) {
	if w.reports == nil {
		return
	}
	for w.end == nil {
		r, sender, err := readReport(w.reports)
		if err != nil {
			_ = syscall.Kill(w.pid, syscall.SIGKILL) // it may have ended
			return
		}
		if r.Event == eventEnded {
			w.end = &r
		}
		f(r, sender)
	}
}

// wait returns when the child has ended, or the program of an init. It is not reaped, so its number, and that of its group, are not
// reused.
func (w *watched) wait() {
	if w.end != nil {
		return
	}
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

// reap reaps a child that has ended, or ends the init of a program that has, and returns how that ended.
func (w *watched) reap() (status syscall.WaitStatus, usage syscall.Rusage) {
	if w.reports != nil {
		_ = syscall.Kill(w.pid, syscall.SIGKILL) // it may have ended
		_ = w.reports.Close()
	}
	for {
		_, err := syscall.Wait4(w.pid, &status, 0, &usage)
		if !errors.Is(err, syscall.EINTR) {
			closeFile(w.file)
			break
		}
	}
	if w.end != nil {
		return syscall.WaitStatus(w.end.Status), w.end.Usage
	}
	return status, usage
}
