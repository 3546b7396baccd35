package host_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// stat returns the state and the parent of a process; state is 0 if there is none.
func stat(pid int) (state byte, parent int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0
	}
	_, rest, _ := strings.Cut(string(text), ") ") // no test creates names with such a bracket
	fields := strings.Fields(rest)
	parent, _ = strconv.Atoi(fields[1])
	return fields[0][0], parent
}

// stopped reports whether every thread of a process has stopped, which may be later than the signal.
func stopped(pid int) bool {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, thread := range threads {
		tid, _ := strconv.Atoi(thread.Name())
		if state, _ := stat(tid); state != 'T' {
			return false
		}
	}
	return err == nil
}

// alive reports whether a process exists and is not a zombie.
func alive(pid int) bool {
	state, _ := stat(pid)
	return state != 0 && state != 'Z' && state != 'X'
}

// numbers lists all processes.
func numbers() (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// children lists this process's children, including zombies.
func children() (list []string) {
	for _, pid := range numbers() {
		if state, parent := stat(pid); parent == os.Getpid() {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			list = append(list, fmt.Sprintf("%d %c %q", pid, state, text))
		}
	}
	return list
}

// readPID waits for the number of a process in a file, which it has written in the PID namespace of process near.
func readPID(t testing.TB, near int, path string) int {
	t.Helper()
	var pid int
	testkit.Eventually(t, "a number in "+path, func() bool {
		text, err := os.ReadFile(path)
		if err == nil {
			pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		return err == nil
	})
	return testkit.Outside(t, near, pid)
}
