package host

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// hard returns a hard limit of a process; 0 is the caller.
func hard(pid, resource int) (uint64, error) {
	var limit unix.Rlimit
	err := unix.Prlimit(pid, resource, nil, &limit)
	if errors.Is(err, unix.EPERM) && os.Geteuid() == 0 {
		return shownHard(pid, resource) // user 0 without CAP_SYS_RESOURCE, whose programs may run as another user
	}
	if err != nil {
		return 0, err
	}
	return limit.Max, nil
}

// shownHard reads a hard limit with a mark from /proc, which any user may read.
func shownHard(pid, resource int) (uint64, error) {
	name := map[int]string{unix.RLIMIT_LOCKS: "Max file locks", unix.RLIMIT_RSS: "Max resident set"}[resource]
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/limits")
	if errors.Is(err, os.ErrNotExist) {
		return 0, unix.ESRCH
	}
	if err != nil || name == "" {
		return 0, unix.EPERM
	}
	for line := range bytes.Lines(text) {
		rest, ok := bytes.CutPrefix(line, []byte(name))
		if !ok {
			continue
		}
		const most = 1 // the soft limit precedes it
		fields := bytes.Fields(rest)
		if len(fields) <= most {
			break
		}
		if string(fields[most]) == "unlimited" {
			return unix.RLIM_INFINITY, nil
		}
		return strconv.ParseUint(string(fields[most]), 10, 64)
	}
	return 0, unix.EPERM
}

// limitsOf returns the two limits that may hold a mark. The error is ESRCH if the process has ended, EPERM if it is
// another user's.
func limitsOf(pid int) (locks, rss uint64, err error) {
	if locks, err = hard(pid, unix.RLIMIT_LOCKS); err != nil {
		return 0, 0, err
	}
	rss, err = hard(pid, unix.RLIMIT_RSS)
	return locks, rss, err
}

// wear permanently marks the calling process.
func (m mark) wear() error {
	locks, rss := m.limits()
	// The order matters: without RLIMIT_LOCKS there is no mark, and half a mark is a broken one.
	if err := unix.Prlimit(0, unix.RLIMIT_RSS, &unix.Rlimit{Cur: rss, Max: rss}, nil); err != nil {
		return fmt.Errorf("set limit: %w", err)
	}
	if err := unix.Prlimit(0, unix.RLIMIT_LOCKS, &unix.Rlimit{Cur: locks, Max: locks}, nil); err != nil {
		return fmt.Errorf("set limit: %w", err)
	}
	// A 32-bit kernel treats such values as infinity and reports no error.
	gotLocks, gotRSS, err := limitsOf(0)
	if err != nil {
		return err
	}
	if got, ok := readMark(gotLocks, gotRSS); !ok || got != m {
		return fmt.Errorf("%w: the kernel does not keep 64-bit limits", ErrUnsupported)
	}
	return nil
}

// census finds marked processes. Calls during a search share the next one, so that a thousand agents that end at the same
// time cost only a few searches.
type census struct {
	mu      sync.Mutex
	waiting *round
	running sync.Mutex
}

// round is one search.
type round struct {
	done  chan struct{}
	found map[mark][]int
	err   error
}

// fresh returns the processes of every mark, from a search that started after the call.
func (c *census) fresh() (map[mark][]int, error) {
	c.mu.Lock()
	r := c.waiting
	lead := r == nil
	if lead {
		r = &round{done: make(chan struct{})}
		c.waiting = r
	}
	c.mu.Unlock()
	if !lead {
		<-r.done
		return r.found, r.err
	}
	c.running.Lock()
	defer c.running.Unlock()
	c.mu.Lock()
	c.waiting = nil
	c.mu.Unlock()
	r.found, r.err = marked()
	close(r.done)
	return r.found, r.err
}

// marked searches /proc once. It may miss a process that is forked meanwhile: callers that need all of them repeat until
// there is none.
func marked() (map[mark][]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	names, err := dir.Readdirnames(-1)
	if err := errors.Join(err, dir.Close()); err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	found := map[mark][]int{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if m, ok := markOf(pid); ok {
			found[m] = append(found[m], pid)
		}
	}
	return found, nil
}

// markOf returns the mark of a process, or spoiled if it was broken. A process that has ended, belongs to another user, or
// belongs to no agent has none.
func markOf(pid int) (mark, bool) {
	locks, err := hard(pid, unix.RLIMIT_LOCKS)
	if err != nil || locks == unix.RLIM_INFINITY { // nearly all
		return 0, false
	}
	rss, err := hard(pid, unix.RLIMIT_RSS)
	if err != nil {
		return 0, false
	}
	if m, ok := readMark(locks, rss); ok {
		return m, true
	}
	// Only user 0 sees limits of other users' processes, on which it must not act.
	info, err := os.Stat("/proc/" + strconv.Itoa(pid))
	if err != nil {
		return 0, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	// Only programs that user 0 runs as another user can have half of a mark.
	half := os.Geteuid() == 0 && (locks >= markBase || rss >= markBase && rss != unix.RLIM_INFINITY)
	return spoiled, ok && (int(stat.Uid) == os.Geteuid() || half) && bound(pid)
}

// own counts the marked processes that belong to an agent.
func own(pids []int) (n int) {
	for _, pid := range pids {
		if bound(pid) {
			n++
		}
	}
	return n
}

// bound reports whether a process has no_new_privs, which every process of an agent permanently has. An agent without a
// sandbox can lower the limits of any process of its user to what looks like a mark, but it cannot set no_new_privs for
// another process, so a process without no_new_privs is not counted. If that is unknown, the process counts.
func bound(pid int) bool {
	is, _ := boundTo(pid)
	return is
}

// boundTo is bound, and returns an error if that is unknown.
func boundTo(pid int) (bool, error) {
	if pid == os.Getpid() {
		return false, nil
	}
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	return err != nil || !bytes.Contains(status, []byte("\nNoNewPrivs:\t0\n")), err
}
