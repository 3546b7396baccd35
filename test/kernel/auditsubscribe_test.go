package kernel_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
)

// auditor is a capability to read the audit log and make calls, including spawns.
const auditor = `{"allowed_syscalls":["Audit.*","Syscall.Spawn","Memory.*"]}`

// logged returns the PIDs whose entries Audit.Log shows to a process, sorted.
func (c *client) logged() (pids []int64) {
	c.t.Helper()
	var log struct {
		Entries []entry `json:"entries"`
	}
	c.call("Audit.Log", `{"limit":1000}`, &log)
	for _, e := range log.Entries {
		pids = append(pids, e.PID)
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

// TestRecordFollowed: an agent sees its own calls and those of its descendants, in queries and in pushes, but no calls of
// its parent, its siblings and the operator, whatever it requests; the operator sees all. A subscriber that loses its
// permission is notified immediately.
func TestRecordFollowed(t *testing.T) {
	t.Parallel()
	for _, d := range dialects() {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			p := assemble(t)
			operator, all := p.connect(0), p.connect(0)
			parent, sibling := operator.spawn(0, auditor), operator.spawn(0, auditor)
			child := operator.spawn(parent, auditor)
			grandchild := operator.spawn(child, auditor)
			on := map[int64]*client{}
			for _, pid := range []int64{parent, sibling, child, grandchild} {
				on[pid] = p.connect(pid)
			}
			follower := p.connect(child)
			id := follower.speak(d, "Audit.Subscribe", `{"types":["Memory.*"]}`, "").Metadata.Causation
			stranger := p.connect(child)
			stranger.speak(d, "Audit.Subscribe", fmt.Sprintf(`{"since_seq":1,"pid":%d}`, parent), "")
			all.speak(d, "Audit.Subscribe", `{"types":["Memory.Set"]}`, "")
			var want []int64
			for _, pid := range []int64{parent, child, sibling, grandchild, child} {
				on[pid].speak(d, "Memory.Set", fmt.Sprintf(`{"key":"%d","value":1}`, pid), "")
				want = append(want, pid)
			}
			pushed := func(c *client) int64 {
				t.Helper()
				a := c.event(d, schema.AuditRecorded)
				var e schema.AuditEntry
				if err := json.Unmarshal(a.Data, &e); err != nil || e.Type != "Memory.Set" || a.Metadata.Causation != e.ID {
					t.Fatalf("pushed %s because of %s: %v", a.Data, a.Metadata.Causation, err)
				}
				return e.PID
			}
			for _, pid := range want {
				if got := pushed(all); got != pid {
					t.Errorf("the operator is pushed a call of pid %d, want %d", got, pid)
				}
			}
			for _, pid := range []int64{child, grandchild, child} {
				if got := pushed(follower); got != pid {
					t.Errorf("pid %d is pushed a call of pid %d, want %d", child, got, pid)
				}
			}
			for _, pid := range []int64{parent, child, grandchild, sibling} {
				own := map[int64][]int64{parent: {parent, child, grandchild}, child: {child, grandchild}, grandchild: {grandchild}, sibling: {sibling}}[pid]
				if got := on[pid].logged(); !slices.Equal(got, own) {
					t.Errorf("pid %d is shown calls of %v, want %v", pid, got, own)
				}
			}
			if got := operator.logged(); !slices.Equal(got, []int64{0, parent, sibling, child, grandchild}) {
				t.Errorf("the operator is shown calls of %v", got)
			}

			operator.call("Capability.Revoke", fmt.Sprintf(`{"pid":%d}`, child), nil)
			a := follower.event(d, "Audit.Unsubscribed")
			if !strings.Contains(string(a.Data), `"code":403`) || !strings.Contains(string(a.Data), "Audit.Subscribe") || a.Metadata.Causation != id {
				t.Errorf("the subscription ended with %s, caused by %s", a.Data, a.Metadata.Causation)
			}
			stranger.event(d, "Audit.Unsubscribed") // and has seen nothing before it
			if a := stranger.speak(d, "Syscall.Ping", `{"payload":1}`, ""); a.Kind == "error" {
				t.Errorf("a call after the end of the subscription: %s", a.Data)
			}
		})
	}
}

// TestBadSubscriptions: a subscription without types is refused, and so is an idempotency key.
func TestBadSubscriptions(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	for _, types := range []string{`"memory"`, `"Memory"`, `"*"`, `"Memory.Set","Memory.*x"`, `""`, `"Memory.Set "`} {
		c.refused(422, "Audit.Subscribe", `{"types":[`+types+`]}`, "neither a type such as")
	}
	c.refused(422, "Audit.Subscribe", `{"since_seq":-1}`, "since_seq")
	if a := c.askWith("Audit.Subscribe", `{}`, `,"idempotencyKey":"k"`); a.Kind != "error" || !strings.Contains(string(a.Data), "idempotencyKey") {
		t.Errorf("with a key: %s", a.Data)
	}
}
