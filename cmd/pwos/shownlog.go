package main

import (
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/internal/strayframe"
)

// shownLog passes on to the log of an agent what is shown of it at this terminal. The kernel gives the pipe before the program starts,
// unless it keeps no such log.
type shownLog struct {
	pipe atomic.Pointer[os.File]

	mu     sync.Mutex // guards the rest
	frames strayframe.Finder
	stray  bool // the output has a frame
}

// open takes the pipe.
func (l *shownLog) open(fd int) error {
	err := unix.SetNonblock(fd, true) // for the deadline
	l.pipe.Store(os.NewFile(uintptr(fd), "log"))
	return err
}

// Write never fails, and does not wait long for a kernel that hangs: the output is the user's first.
func (l *shownLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	l.stray = l.frames.Find(b) || l.stray
	l.mu.Unlock()
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

// strayed reports whether what was shown has a frame of the protocol.
func (l *shownLog) strayed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stray
}

// close ends the log. The kernel waits for that when the program has ended.
func (l *shownLog) close() {
	if pipe := l.pipe.Swap(nil); pipe != nil {
		_ = pipe.Close() // what was written has arrived
	}
}
