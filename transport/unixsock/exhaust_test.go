package unixsock_test

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// runAs runs the calling test alone, in a process of its own whose environment has role.
func runAs(t *testing.T, role string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), role+"=1", "GORACE=atexit_sleep_ms=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

var taken []*os.File

// exhaust takes every descriptor that the process may have.
func exhaust(t *testing.T) {
	t.Helper()
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 100, Max: 100}))
	for {
		file, err := os.Open(os.DevNull)
		if errors.Is(err, syscall.EMFILE) {
			return
		}
		must(t, err)
		taken = append(taken, file)
	}
}

// free gives some back.
func free(t *testing.T, n int) {
	t.Helper()
	for range n {
		must(t, taken[len(taken)-1].Close())
		taken = taken[:len(taken)-1]
	}
}
