//go:build unix && !linux

package host

import (
	"errors"
	"os"
	"runtime"
	"syscall"
)

// rssUnit is the unit in which the system counts memory in use, in bytes.
func rssUnit() int64 {
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return 1
	}
	return 1024
}

// itself is the path of the running program.
func itself() (string, error) { return os.Executable() }

// watched is a child, which a thread waits for.
type watched struct {
	pid    int
	status syscall.WaitStatus
	usage  syscall.Rusage
}

func newWatched(*syscall.SysProcAttr) *watched { return &watched{} }

// begin takes the forked child.
func (w *watched) begin(pid int) error {
	w.pid = pid
	return nil
}

// wait returns when the child has ended. There is no way to wait without reaping on all of these systems.
func (w *watched) wait() {
	for {
		_, err := syscall.Wait4(w.pid, &w.status, 0, &w.usage)
		if !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

// reap returns what wait got.
func (w *watched) reap() (syscall.WaitStatus, syscall.Rusage) { return w.status, w.usage }
