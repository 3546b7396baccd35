package agents_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// gorge writes to the disk until it is full, as long as it runs: in its working directory, or with an argument in its directory for
// temporary files.
func gorge(args []string) int {
	dir := "."
	if len(args) > 0 {
		dir = os.TempDir()
	}
	file, err := os.Create(filepath.Join(dir, "fat"))
	if err != nil {
		return failed(err)
	}
	for size := 1 << 20; ; time.Sleep(time.Millisecond) {
		if _, err := file.Write(make([]byte, size)); err != nil && size > 1 {
			size /= 2
		}
	}
}

// launchOn starts a daemon whose state is on a separate small file system in memory. It needs no privileges if the system
// lets all users have namespaces; otherwise the test is skipped.
func (p *place) launchOn(t testing.TB, size string) *testkit.Process {
	t.Helper()
	alone := []string{"unshare", "--user", "--map-root-user", "--mount", "sh", "-c"}
	mount := "mount -t tmpfs -o mode=700,size=" + size + ` tmpfs "$0"`
	state := p.Path("s")
	testkit.Must(t, os.Mkdir(state, 0o700))
	if out, err := exec.Command(alone[0], append(alone[1:], mount, state)...).CombinedOutput(); err != nil {
		t.Skipf("needs a file system of its own: %v: %s", err, out)
	}
	return p.launchAs(t, append(alone, mount+` && exec "$1"`, state, self(t))...)
}

// refused reports whether a call fails because the disk is full.
func (c *client) refused(t testing.TB, typ, data string) bool {
	t.Helper()
	_, err := c.call("command", typ, data)
	if fault, ok := errors.AsType[*kernelError](err); ok && fault.Code == 503 {
		return true
	}
	testkit.Must(t, err)
	return false
}

// An agent that fills the disk can be stopped while it continues: the operator revokes its token, ends it, and ends the
// kernel, and each of these is recorded.
func TestAgentFillsTheDisk(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	daemon := p.launchOn(t, "8m")
	c := p.dial(t)
	pid := c.spawn(t, allowAll, "gorge")
	other := c.spawn(t, allowAll, "gorge") // it keeps the disk full when the first has ended
	value := strings.Repeat("x", 8000)
	testkit.Eventually(t, "full disk", func() bool {
		return c.refused(t, "Memory.Set", fmt.Sprintf(`{"key":"a","value":%q}`, value))
	})
	if !c.refused(t, "Syscall.Spawn", `{"child_agent_id":"more"}`) {
		t.Error("a process was spawned on a full disk")
	}
	revoked, err := c.call("command", "Capability.Revoke", fmt.Sprintf(`{"pid":%d}`, pid))
	testkit.Must(t, err)
	c.must(t, "command", "Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, pid), nil)
	if d := c.get(t, pid); d.State != "TERMINATED" || d.OSPID != nil || d.Exit == nil {
		t.Errorf("the agent that was ended is %+v", d)
	}
	if d := c.get(t, other); d.State != "RUNNING" {
		t.Errorf("the other agent is %+v", d)
	}
	var log struct {
		Entries []struct {
			Type string `json:"type"`
		} `json:"entries"`
	}
	c.must(t, "query", "Audit.Log", fmt.Sprintf(`{"since_seq":%d}`, revoked.Metadata.Kernel.Seq-1), &log)
	found := map[string]bool{}
	for _, e := range log.Entries {
		found[e.Type] = true
	}
	for _, typ := range []string{"Capability.Revoke", "Syscall.Terminate", "Process.NoteEnd"} {
		if !found[typ] {
			t.Errorf("the journal has no %s", typ)
		}
	}
	c.must(t, "command", "Syscall.Shutdown", `{}`, nil)
	daemon.Wait(t)
}

// An agent that fills the disk with temporary files is warned about. The operator ends it: its files go with it, and the kernel goes on.
func TestAgentFillsTmp(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	daemon := p.launchOn(t, "8m")
	c := p.dial(t)
	pid := c.spawn(t, allowAll, "gorge", "tmp")
	value := strings.Repeat("x", 8000)
	set := func() bool { return c.refused(t, "Memory.Set", fmt.Sprintf(`{"key":"a","value":%q}`, value)) }
	testkit.Eventually(t, "full disk", set)
	var status struct {
		Warnings []string `json:"warnings"`
	}
	c.must(t, "query", "Audit.Metrics", `{}`, &status)
	if !strings.Contains(strings.Join(status.Warnings, "\n"), "the disk of the state directory is nearly full") {
		t.Errorf("the warnings are %q", status.Warnings)
	}
	c.must(t, "command", "Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, pid), nil)
	testkit.Eventually(t, "room", func() bool { return !set() })
	if left, err := os.ReadDir(fmt.Sprintf("/proc/%d/root%s/agents/tmp", daemon.PID(), p.Path("s"))); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
	c.must(t, "command", "Syscall.Shutdown", `{}`, nil)
	daemon.Wait(t)
}
