package host

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"
)

// guard is the main function of the guard, a process that outlives the daemon until it has killed the programs that the
// daemon hosted. Its standard input is a pipe whose other end only the daemon has, so the end of its input means that the
// daemon has died.
func guard(words []string) int {
	if len(words) != 1 {
		return 2
	}
	own, err := strconv.ParseUint(words[0], 10, 64)
	if err != nil {
		return 2
	}
	debug.SetGCPercent(20) // it is idle for a long time
	// It must survive a Ctrl-C, a logout, and a service manager that sends TERM to every process.
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGPIPE, syscall.SIGUSR1,
		syscall.SIGUSR2, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)
	_, _ = os.Stdout.WriteString(ready) // a daemon that has died does not read it, and needs the guard even more
	o := newOrphans(mark(own))
	buffer := make([]byte, 512)
	for {
		n, err := os.Stdin.Read(buffer)
		o.told(buffer[:n])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 1
		}
	}
	o.end()
	return 0
}

// Pauses between two starts of a guard that ends repeatedly.
const (
	firstGuardPause = 10 * time.Millisecond
	lastGuardPause  = 5 * time.Second
	// guardPatience bounds the start of a guard on a busy machine.
	guardPatience = time.Minute
)

// startGuard starts a guard and, when that is ready, stores its pipe.
func (h *Host) startGuard() (*watched, error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	word, said, err := os.Pipe()
	if err != nil {
		closeFile(theirs)
		closeFile(ours)
		return nil, err
	}
	defer closeFile(word)
	w, err := h.forks.fork(&forkCall{
		argv: []string{guardArg, guardArg, strconv.FormatUint(uint64(h.own), 10)},
		env:  []string{"GOMAXPROCS=1", childVar + "=1"}, dir: "/", files: []descriptor{theirs, said, said},
	})
	closeFile(theirs)
	closeFile(said)
	if err != nil {
		closeFile(ours)
		return nil, err
	}
	first := make([]byte, len(ready))
	err = word.SetReadDeadline(time.Now().Add(guardPatience))
	if err == nil {
		_, err = io.ReadFull(word, first)
	}
	if err != nil || string(first) != ready {
		closeFile(ours)
		_ = syscall.Kill(w.pid, syscall.SIGKILL)
		w.wait()
		w.reap()
		return nil, errors.Join(errNoShim, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		closeFile(ours) // this ends the guard
	} else {
		h.guardPipe = ours
		h.tellAll()
	}
	return w, nil
}

// keepGuard restarts the guard whenever it ends, until the host closes. Without a guard, the daemon's death kills only the
// first process of each agent, and the next start of the same kernel the others.
func (h *Host) keepGuard(w *watched) {
	defer h.workers.Done()
	pause := firstGuardPause
	for w != nil {
		w.wait()
		w.reap()
		w = nil
		h.dropGuard()
		for w == nil {
			select {
			case <-h.closing:
				return
			case <-time.After(pause):
			}
			pause = min(2*pause, lastGuardPause)
			w, _ = h.startGuard() // retried until it works
		}
	}
}

// dropGuard closes the pipe of a guard that ended, or that should end.
func (h *Host) dropGuard() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.guardPipe != nil {
		closeFile(h.guardPipe)
		h.guardPipe = nil
	}
}

// closeFile closes a file that was not written to.
func closeFile(f *os.File) { _ = f.Close() }
