package host

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// supported returns an error that says what hosting lacks on this system, or nil.
func supported() error {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return fmt.Errorf("%w: pidfd_open, which came with Linux 5.3: %w", ErrUnsupported, err)
	}
	closeFD(fd)
	locks, rss, err := limitsOf(0)
	if err != nil {
		return err
	}
	if _, ok := readMark(locks, rss); ok {
		return fmt.Errorf("%w: this process is itself an agent's", ErrUnsupported)
	}
	if locks != unix.RLIM_INFINITY || rss != unix.RLIM_INFINITY {
		return fmt.Errorf("%w: the limits on file locks and resident memory, which do nothing, must be unlimited (ulimit -x, ulimit -m)", ErrUnsupported)
	}
	return nil
}

// settle kills what earlier incarnations of an instance left, and chooses a new incarnation.
func settle(instance uint64) (mark, error) {
	found, err := marked()
	if err != nil {
		return 0, err
	}
	// The previous guard may still run, with the marks of its own incarnation, so the new one must differ.
	used := map[uint64]bool{}
	for m := range found {
		if m.instance() == instance {
			used[m.incarnation()] = true
		}
	}
	sweepAll(func(m mark) bool { return m.instance() == instance })
	for {
		if n := rand.Uint64() & mostIncarnation; !used[n] {
			return newMark(instance, n, 0), nil
		}
	}
}

// killSpoiled kills the processes with broken marks.
func (h *Host) killSpoiled(found map[mark][]int) {
	for _, pid := range found[spoiled] {
		kill(pid, func(mark) bool { return false }, h.awaits)
	}
}

// awaits reports whether a process is an agent's init, which the host still has to reap.
func (h *Host) awaits(pid int) bool {
	return slices.ContainsFunc(h.Processes(), func(p *Process) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.watched != nil && p.watched.pid == pid && !p.reaped
	})
}

// sweepAll kills every process whose mark is broken, or for which wants is true. It does not wait for them.
func sweepAll(wants func(mark) bool) {
	sweep(func() ([]int, error) {
		found, err := marked()
		var all []int
		for m, pids := range found {
			if m == spoiled || wants(m) {
				all = append(all, pids...)
			}
		}
		return all, err
	}, wants, func(int) bool { return false }, 0)
}

// list returns the processes with the agent's mark, except for its init and including zombies, and those with a broken mark, which
// may be the agent's.
func (p *Process) list() ([]int, error) {
	found, err := p.host.search.fresh()
	return slices.Concat(p.withoutInit(found[p.mark]), found[spoiled]), err
}

// withoutInit removes the init from a list of the agent's processes.
func (p *Process) withoutInit(pids []int) []int {
	return slices.DeleteFunc(slices.Clone(pids), func(pid int) bool { return pid == p.watched.pid })
}

// is reports whether a mark is the agent's.
func (p *Process) is(m mark) bool { return m == p.mark }

// killOthers kills the processes that an agent's program left when it, or its init, ended. It returns their number.
func (p *Process) killOthers() int {
	program := p.OSPID()
	if p.watched.over() {
		program = 0 // it may still run
	}
	return sweep(p.list, p.is, p.host.awaits, program)
}

// others counts the agent's processes, except for the first, that have not ended.
func (p *Process) others() int {
	pids, err := p.list()
	if err != nil {
		return 0
	}
	n := 0
	for _, pid := range pids {
		if pid != p.OSPID() && signalMarked(pid, 0, p.is) {
			n++
		}
	}
	return n
}

// signalOthers signals the agent's processes that have left its group.
func (p *Process) signalOthers(sig syscall.Signal) {
	pids, err := p.list()
	if err != nil {
		return // the grace ends with kills that are repeated until none is left
	}
	for _, pid := range pids {
		if group, err := unix.Getpgid(pid); err == nil && group != p.OSPID() {
			signalMarked(pid, sig, p.is)
		}
	}
}

// stopTime bounds awaitStopped.
const stopTime = 200 * time.Millisecond

// awaitStopped waits until no thread of the agent runs, after SIGSTOP. The child of a fork that is not over keeps the SIGSTOP if SIGCONT
// comes before its end: it would be stopped for good.
func (p *Process) awaitStopped() {
	pids, err := p.list()
	if err != nil {
		return // as in signalOthers
	}
	end := time.Now().Add(stopTime)
	for _, pid := range pids {
		for runs(pid) && time.Now().Before(end) {
			time.Sleep(stopTime / 1000)
		}
	}
}

// runs reports whether a thread of a process is neither stopped, ended, nor in the midst of a call that cannot be interrupted.
func runs(pid int) bool {
	dir := fmt.Sprintf("/proc/%d/task", pid)
	threads, err := os.ReadDir(dir)
	if err != nil {
		return false // it has ended
	}
	return slices.ContainsFunc(threads, func(thread os.DirEntry) bool {
		text, err := os.ReadFile(filepath.Join(dir, thread.Name(), "stat"))
		after := bytes.LastIndexByte(text, ')') + len(") ")
		return err == nil && after < len(text) && (text[after] == 'R' || text[after] == 'S')
	})
}

// signalMarked signals a process whose mark satisfies wants. It reports whether there was one that has not ended.
func signalMarked(pid int, sig syscall.Signal, wants func(mark) bool) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer closeFD(fd)
	if m, ok := markOf(pid); !ok || !wants(m) || !bound(pid) || ended(fd) {
		return false
	}
	err = unix.PidfdSendSignal(fd, sig, nil, 0)
	return !errors.Is(err, unix.ESRCH)
}

// orphans is the guard's list of processes, which marks replace on this system.
type orphans struct{ own mark }

func newOrphans(own mark) *orphans { return &orphans{own} }

// told ignores the daemon's messages about processes: marks identify them.
func (*orphans) told([]byte) {}

// end kills the programs that the dead daemon hosted.
func (o *orphans) end() { sweepAll(func(m mark) bool { return m.host() == o.own }) }

// tell does nothing on this system.
func (*Host) tell(*Process) {}

// tellAll does nothing on this system.
func (*Host) tellAll() {}
