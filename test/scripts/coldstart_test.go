package scripts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// 64 clients without a running kernel: one kernel starts, and gives 64 right answers.
func TestColdStart(t *testing.T) {
	t.Parallel()
	const crowd = 64
	p := settle(t)
	var clients sync.WaitGroup
	for i := range crowd {
		clients.Go(func() {
			want := fmt.Sprintf("{\"payload\":%d}\n", i)
			if got := p.pwos(t, "call", "Syscall.Ping", fmt.Sprintf("payload=%d", i)); got != want {
				t.Errorf("client %d got %q, want %q", i, got, want)
			}
		})
	}
	clients.Wait()
	if kernels := p.kernels(t); len(kernels) != 1 {
		t.Errorf("kernels %v run, want one", kernels)
	}
	p.pwos(t, "shutdown")
	if kernels := p.kernels(t); len(kernels) != 0 {
		t.Errorf("kernels %v run after the shutdown", kernels)
	}
}

// kernels returns the kernel processes of this place: those that have its lock file open. Without /proc it is the one whose
// number is in the file, if any.
func (p place) kernels(t *testing.T) []string {
	t.Helper()
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		text, err := os.ReadFile(filepath.Join(p.RuntimeDir(), "kernel.lock"))
		testkit.Must(t, err)
		return strings.Fields(string(text))
	}
	descriptors, err := filepath.Glob("/proc/[0-9]*/fd/*")
	testkit.Must(t, err)
	lock := filepath.Join(p.RuntimeDir(), "kernel.lock")
	found := make(map[string]bool)
	for _, d := range descriptors {
		if target, err := os.Readlink(d); err == nil && target == lock {
			found[strings.Split(d, "/")[2]] = true
		}
	}
	var pids []string
	for pid := range found {
		pids = append(pids, pid)
	}
	return pids
}
