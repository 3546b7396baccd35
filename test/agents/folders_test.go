package agents_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// A kernel that runs for long removes the directories of forgotten agents some time after it has forgotten them, and keeps
// others.
func TestFoldersOfForgottenAgentsGo(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: it starts as many processes as the kernel remembers")
	}
	t.Parallel()
	p, _ := start(t)
	c := p.dial(t)
	folder := func(pid int64) bool {
		_, err := os.Stat(p.Path(fmt.Sprintf("s/agents/%d", pid)))
		return err == nil
	}
	missing := func() (pid int64) {
		var out struct {
			ChildPID int64 `json:"child_pid"`
		}
		c.must(t, "command", "Syscall.Spawn", `{"child_agent_id":"x","command":["no-such-program-anywhere"]}`, &out)
		return out.ChildPID
	}
	lives := c.spawn(t, "", "idle")
	first := missing()
	if !folder(lives) || !folder(first) {
		t.Fatal("no agent has a directory")
	}
	const remembered, window = 10_000, 100
	var root struct {
		PID int64 `json:"child_pid"`
	}
	c.must(t, "command", "Syscall.Spawn", `{"child_agent_id":"root","capabilities":{"allowed_syscalls":["*"]}}`, &root)
	for part := range remembered / window {
		for n := range window {
			n += part * window
			testkit.Must(t, c.send("command", "Syscall.Spawn", fmt.Sprintf(`{"pid":%d,"child_agent_id":"x%d"}`, root.PID, n)))
		}
		for range window {
			if f, err := c.next(); err != nil || f.Kind != "reply" {
				t.Fatalf("%s %s, %v", f.Kind, f.Data, err)
			}
		}
	}
	c.must(t, "command", "Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, root.PID), nil) // and all its descendants
	for range 256 {
		missing()
	}
	testkit.Eventually(t, "the directory of a forgotten agent is removed", func() bool { return !folder(first) })
	if !folder(lives) {
		t.Error("the directory of a living agent was removed")
	}
}
