package main

import (
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// shownLog passes on to the log of an agent what is shown of it at this terminal. The kernel gives the pipe before the program starts,
// unless it keeps no such log.
type shownLog struct{ pipe atomic.Pointer[os.File] }

// open takes the pipe.
func (l *shownLog) open(fd int) error {
	err := unix.SetNonblock(fd, true) // for the deadline
	l.pipe.Store(os.NewFile(uintptr(fd), "log"))
	return err
}

// Write never fails, and does not wait long for a kernel that hangs: the output is the user's first.
func (l *shownLog) Write(b []byte) (int, error) {
	if pipe := l.pipe.Load(); pipe != nil {
		err := pipe.SetWriteDeadline(time.Now().Add(lastOutput))
		if err == nil {
			_, err = pipe.Write(b)
		}
		if err != nil {
			l.close()
		}
	}
	return len(b), nil
}

// close ends the log. The kernel waits for that when the program has ended.
func (l *shownLog) close() {
	if pipe := l.pipe.Swap(nil); pipe != nil {
		_ = pipe.Close() // what was written has arrived
	}
}
