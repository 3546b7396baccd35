//go:build unix && !linux

package host

import (
	"errors"
	"io"
	"os"
	"runtime"
	"syscall"
)

// rssUnit returns the unit in which the system counts memory in use, in bytes.
func rssUnit() int64 {
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return 1
	}
	return 1024
}

// itself returns the path of the running program.
func itself() (string, error) { return os.Executable() }

// watched is a child whose end a thread awaits.
type watched struct {
	pid     int
	status  syscall.WaitStatus
	usage   syscall.Rusage
	reports io.Closer // nil
}

// openReports opens nothing: the child is the program.
func openReports() (ours io.Closer, theirs *os.File, err error) { return nil, nil, nil }

// newPIDs does nothing: no plan has PID namespaces.
func newPIDs(*syscall.SysProcAttr) {}

// hear does nothing: nobody reports.
func (*Process) hear() {}

func newWatched(*syscall.SysProcAttr) *watched { return &watched{} }

// begin stores the forked child.
func (w *watched) begin(pid int) error {
	w.pid = pid
	return nil
}

// program returns the number of the program.
func (w *watched) program() int { return w.pid }

// over returns false: the child is the program, whose number is not reused before it is reaped.
func (w *watched) over() bool { return false }

// hurry does nothing: the child is the program.
func (w *watched) hurry() {}

// wait returns when the child has ended. Not all of these systems can wait without reaping.
func (w *watched) wait() {
	for {
		_, err := syscall.Wait4(w.pid, &w.status, 0, &w.usage)
		if !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

// reap returns the result of wait.
func (w *watched) reap() (syscall.WaitStatus, syscall.Rusage) { return w.status, w.usage }
