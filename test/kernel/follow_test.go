package kernel_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/promptware-os/pwos/schema"
)

// lived has the members of a process event that a test uses: its data is the descriptor.
type lived struct {
	PID    int64  `json:"pid"`
	Parent int64  `json:"parent_pid"`
	State  string `json:"state"`
}

// TestProcessesFollowed has the operator follow all processes, and an agent itself and its descendants: each event is about
// an entry of the journal and names the request that caused it. Events before the subscription, and of other processes, are
// not pushed. Pushes leave no entries.
func TestProcessesFollowed(t *testing.T) {
	t.Parallel()
	for _, d := range dialects() {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			p := assemble(t)
			c := p.connect(0)
			const rights = `{"allowed_syscalls":["Process.*","SYS_SPAWN","SYS_TERMINATE"]}`
			pid := c.spawn(0, rights)
			child := c.spawn(pid, rights)
			all, own, leaf := p.connect(0), p.connect(pid), p.connect(0)
			if a := all.speak(d, "Process.Subscribe", `{}`, ""); string(a.Data) != `{"pid":0}` {
				t.Errorf("the operator follows %s", a.Data)
			}
			if a := own.speak(d, "Process.Subscribe", `{}`, ""); string(a.Data) != fmt.Sprintf(`{"pid":%d}`, pid) {
				t.Errorf("pid %d follows %s", pid, a.Data)
			}
			leaf.speak(d, "Process.Subscribe", fmt.Sprintf(`{"pid":%d}`, child), "")
			other := c.spawn(0, rights)
			spawned := fmt.Sprintf("Syscall.Spawn-%d", c.last)
			a := c.askWith("Syscall.Spawn", fmt.Sprintf(`{"pid":%d,"child_agent_id":"grandchild"}`, child), `,"correlation":"flow"`)
			ended := c.ask("Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, child)).Metadata.Causation
			grandchild := other + 1
			operator := c
			check := func(c *client, typ string, want lived, cause, flow string) {
				t.Helper()
				a := c.event(d, typ)
				var got lived
				if err := json.Unmarshal(a.Data, &got); err != nil || got != want || a.Metadata.Causation != cause || a.Metadata.Correlation != flow {
					t.Errorf("%s %s because of %q in %q, want %+v because of %q in %q", typ, a.Data, a.Metadata.Causation, a.Metadata.Correlation, want, cause, flow)
				}
				operator.shape("Process.Get").check(t, a.Data)
			}
			check(all, schema.ProcessSpawned, lived{other, 0, "READY"}, spawned, "")
			for _, follower := range []*client{all, own, leaf} {
				check(follower, schema.ProcessSpawned, lived{grandchild, child, "READY"}, a.Metadata.Causation, "flow")
				check(follower, schema.ProcessTerminated, lived{grandchild, child, "TERMINATED"}, ended, "")
				check(follower, schema.ProcessTerminated, lived{child, pid, "TERMINATED"}, ended, "")
			}
			var log struct {
				Entries []struct {
					Type string `json:"type"`
				} `json:"entries"`
			}
			for c.call("Audit.Log", `{"limit":100}`, &log); len(log.Entries) > 0; log.Entries = log.Entries[1:] {
				if typ := log.Entries[0].Type; typ == "Process.Watch" {
					t.Errorf("%s is in the journal", typ)
				}
			}
		})
	}
}

// TestFollowingRefused: an agent may follow only itself and its descendants, and no one a process that never existed.
func TestFollowingRefused(t *testing.T) {
	t.Parallel()
	p := assemble(t)
	c := p.connect(0)
	const rights = `{"allowed_syscalls":["Process.*"]}`
	pid, other := c.spawn(0, rights), c.spawn(0, rights)
	agent := p.connect(pid)
	agent.refused(403, "Process.Subscribe", fmt.Sprintf(`{"pid":%d}`, other), fmt.Sprintf("pid %d may not follow pid %d", pid, other))
	c.refused(404, "Process.Subscribe", `{"pid":99}`, "no process has pid 99")
	c.call("Capability.Revoke", fmt.Sprintf(`{"pid":%d}`, pid), nil)
	agent.refused(403, "Process.Subscribe", `{}`, "pwos cap grant")
}

// TestFollowerLags has a follower that does not read while more happens than is stored for it: it is told how much it has
// missed, and continues from there.
func TestFollowerLags(t *testing.T) {
	t.Parallel()
	d := start(t)
	c, lazy := d.dial(t), d.dial(t)
	lazy.call("Process.Subscribe", `{}`, nil)
	const agents = 6000
	for n := range agents {
		c.send("Syscall.Spawn", fmt.Sprintf(`{"child_agent_id":"a%0199d"}`, n), "")
		if n%32 == 31 {
			for range 32 {
				c.next()
			}
		}
	}
	for range agents % 32 {
		c.next()
	}
	var last, missed int64
	for last < agents {
		a := lazy.next()
		switch a.Type {
		case schema.ProcessLagged:
			var lag schema.ProcessLag
			if err := json.Unmarshal(a.Data, &lag); err != nil || lag.Missed < 1 {
				t.Fatalf("lagged %s", a.Data)
			}
			missed += lag.Missed
			last += lag.Missed
		case schema.ProcessSpawned:
			var l lived
			if err := json.Unmarshal(a.Data, &l); err != nil || l.PID != last+1 {
				t.Fatalf("%s after %d", a.Data, last)
			}
			last = l.PID
		default:
			t.Fatalf("got %s %s", a.Type, a.Data)
		}
	}
	t.Logf("missed %d of %d", missed, agents)
	if missed == 0 {
		t.Error("no event was missed: the test shows nothing")
	}
}
