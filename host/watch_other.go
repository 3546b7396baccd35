//go:build unix && !linux

package host

import (
	"errors"
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
	pid    int
	status syscall.WaitStatus
	usage  syscall.Rusage
}

func newWatched(*syscall.SysProcAttr) *watched { return &watched{} }

// begin stores the forked child.
func (w *watched) begin(pid int) error {
	w.pid = pid
	return nil
}

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
