package testkit

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// Outside returns the number, as this process sees it, of the process that has number inside in the PID namespace of process near.
func Outside(t testing.TB, near, inside int) int {
	t.Helper()
	own, err := os.Readlink("/proc/self/ns/pid")
	Must(t, err)
	place, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(near), "ns/pid"))
	Must(t, err)
	if place == own {
		return inside
	}
	entries, err := os.ReadDir("/proc")
	Must(t, err)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if !slices.Contains(namespaces(e.Name()), place) {
			continue // of another agent, or it has ended
		}
		status, err := os.ReadFile(filepath.Join("/proc", e.Name(), "status"))
		if err != nil {
			continue
		}
		for line := range bytes.Lines(status) {
			if numbers, ok := bytes.CutPrefix(line, []byte("NSpid:")); ok {
				fields := bytes.Fields(numbers)
				if string(fields[len(fields)-1]) == strconv.Itoa(inside) {
					return pid
				}
			}
		}
	}
	t.Fatalf("no process of the namespace of %d has number %d there", near, inside)
	return 0
}

// namespaces returns the PID namespace of each thread of a process. The first one may have ended.
func namespaces(pid string) (list []string) {
	threads, _ := filepath.Glob(filepath.Join("/proc", pid, "task/*/ns/pid"))
	for _, thread := range threads {
		if at, err := os.Readlink(thread); err == nil {
			list = append(list, at)
		}
	}
	return list
}
