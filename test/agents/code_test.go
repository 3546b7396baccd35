package agents_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestCodeWorkerKilled: the kernel and its registered code survive the kill of a worker, and no worker survives the kill of the kernel.
func TestCodeWorkerKilled(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	daemon := p.launch(t)
	c := p.dial(t)
	c.must(t, "command", "Syscall.Register", `{"name":"Sum.Add","kind":"query","input":{},"code":"export const handler = (i) => ({ sum: i.a + i.b })"}`, nil)
	for range 3 {
		c.must(t, "query", "Sum.Add", `{"a":1,"b":2}`, nil)
		for _, worker := range codeWorkers(t, p.Dir) {
			if process, err := os.FindProcess(worker); err != nil || process.Kill() != nil {
				t.Errorf("kill %d: %v", worker, err)
			}
		}
	}
	c.must(t, "query", "Sum.Add", `{"a":1,"b":2}`, nil)
	if len(codeWorkers(t, p.Dir)) == 0 {
		t.Fatal("no worker runs: the test shows nothing")
	}
	daemon.Kill(t)
	testkit.Eventually(t, "the end of the workers", func() bool { return len(codeWorkers(t, p.Dir)) == 0 })
	p.launch(t)
	p.dial(t).must(t, "query", "Sum.Add", `{"a":1,"b":2}`, nil)
}

// codeWorkers returns the workers that run in a place: they work in a directory of its state.
func codeWorkers(t *testing.T, dir string) (found []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	testkit.Must(t, err)
	for _, path := range all {
		osPID, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		testkit.Must(t, err)
		env, err := os.ReadFile(path) // one that has ended meanwhile has none
		if err == nil && strings.Contains(string(env), "HOME="+dir) && strings.Contains(string(env), "PWOS_AGENT_ID=code\x00") && testkit.Alive(osPID) {
			found = append(found, osPID)
		}
	}
	return found
}
