package host

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ticksPerSecond is USER_HZ, the unit of start times in /proc.
const ticksPerSecond = 100

// Busy reports whether a process runs that the agent's program has started after a time. This program, which a host starts as a hook or
// as a server, and what has started it, do not count.
func (p *Process) Busy(since time.Time) bool {
	pids, err := p.list()
	if err != nil {
		return true // it cannot be excluded
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return true
	}
	bound := (time.Duration(now.Nano()) - time.Since(since)).Seconds() * ticksPerSecond
	self, err := os.Executable()
	if err != nil {
		return true
	}
	parents, ours := make(map[int]int), make(map[int]bool)
	var young []int
	for _, pid := range pids {
		started, parent, ok := born(pid)
		if !ok {
			continue
		}
		parents[pid] = parent
		if exe, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe"); err == nil && isOwn(exe, self) {
			ours[pid] = true
		}
		if float64(started) > bound {
			young = append(young, pid)
		}
	}
	for pid := range ours {
		for at, ok := parents[pid]; ok && !ours[at]; at, ok = parents[at] {
			ours[at] = true
		}
	}
	for _, pid := range young {
		if !ours[pid] {
			return true
		}
	}
	return false
}

// isOwn reports whether a program is this one: client, daemon and front can be one file, or several in a directory.
func isOwn(exe, self string) bool {
	ours := func(path string) bool {
		return slices.Contains([]string{"pwos", "pwosd", "pwos-front"}, filepath.Base(path))
	}
	return exe == self || filepath.Dir(exe) == filepath.Dir(self) && ours(exe) && ours(self)
}

// born returns when a process was started, in ticks since the machine was, and its parent. Zombies count as gone.
func born(pid int) (started int64, parent int, ok bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, false
	}
	end := strings.LastIndex(string(text), ") ") // a name may have blanks and brackets
	if end < 0 {
		return 0, 0, false
	}
	fields := strings.Fields(string(text[end+2:]))
	if len(fields) < 20 || fields[0] == "Z" {
		return 0, 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	if err != nil {
		return 0, 0, false
	}
	started, err = strconv.ParseInt(fields[19], 10, 64)
	return started, parent, err == nil
}
