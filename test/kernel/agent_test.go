package kernel_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/schema"
)

// minimal returns data for each syscall that needs a capability, for an agent that is process 1 with child 2.
func minimal() map[string]string {
	return map[string]string{
		"Audit.Log": `{}`, "Audit.Show": `{"seq":1}`, "Audit.Metrics": `{}`, "Audit.Verify": `{}`, "Audit.Subscribe": `{}`,
		"Event.Graph": `{"correlationId":"x"}`, "Event.Search": `{"query":"x"}`,
		"Http.Fetch":         `{"url":"https://a.example/"}`,
		"Host.ToolUse":       `{"host":"a","session":"b","tool":"c","input":1}`,
		"FileSystem.Hydrate": `{"uri":"a"}`, "FileSystem.Resolve": `{"uri":"a"}`, "Kernel.Ingest": `{"uri":"a"}`, "Syscall.Call": `{"syscall":"a/b"}`,
		"Capability.Check": `{"pid":1,"syscall":"SYS_ALLOC"}`, "Capability.Get": `{}`,
		"Capability.Grant": `{"pid":2,"allowed_syscalls":["Memory.Get"]}`, "Capability.GrantDefault": `{"pid":2}`,
		"Capability.Revoke": `{"pid":2}`, "Capability.RevokeExpired": `{}`,
		"Clock.Advance": `{"ticks":1}`, "Clock.Get": `{}`,
		"Crypto.Derive": `{}`, "Crypto.Open": `{"value":"pwenc:v1:e30"}`, "Crypto.Seal": `{"plaintext":"a"}`,
		"Ipc.Ack": `{"msg_ids":[1]}`, "Ipc.Broadcast": `{"payload":1}`, "Ipc.Receive": `{}`, "Ipc.Subscribe": `{}`,
		"Budget.Show": `{}`, "Job.Cancel": `{"jobId":"job-1"}`, "Job.List": `{}`, "Job.Start": `{"name":"Clock.Get"}`, "Job.Status": `{"jobId":"job-1"}`, "Job.Subscribe": `{}`,
		"Memory.CompareAndSet": `{"key":"a","value":1}`, "Memory.Delete": `{"key":"a"}`, "Memory.Get": `{"key":"a"}`,
		"Memory.List": `{}`, "Memory.Set": `{"key":"a","value":1}`,
		"Message.Replay":  `{"until_seq":1,"pid":1}`,
		"Process.Explain": `{"child_agent_id":"a","command":["sh"]}`,
		"Process.Get":     `{"pid":1}`, "Process.List": `{}`, "Process.Subscribe": `{}`,
		"Step.Begin": `{"host":"h","session":"s","tool":"t"}`, "Step.End": `{"host":"h","session":"s","tool":"t"}`, "Prompt.Submit": `{"host":"h","session":"s","text":"t"}`, "Step.List": `{}`, "Step.Subscribe": `{}`,
		"Step.Get": `{"agent":"a","step":1}`, "Step.Diff": `{"agent":"a"}`, "Step.Undo": `{"agent":"a","tree":"/"}`,
		"Syscall.Alloc": `{"resource_id":"gpu","amount":1}`, "Syscall.Checkpoint": `{}`, "Syscall.CommitDelta": `{}`,
		"Syscall.GetState": `{}`, "Syscall.Query": `{"resource_id":"gpu"}`, "Syscall.Release": `{"resource_id":"gpu","amount":0}`,
		"Syscall.Rollback": `{"to_tick":0}`, "Syscall.SendMsg": `{"receiver_pid":2,"payload":1}`,
		"Syscall.Register": `{"name":"Sum.Add","kind":"query","input":{},"provider":"connection"}`, "Syscall.Unregister": `{"name":"Sum.Add"}`,
		"Syscall.Spawn": `{"child_agent_id":"a"}`, "Syscall.Terminate": `{"target_pid":2}`,
	}
}

// TestAgentAtTheGate uses an agent's own connection, in either dialect. Without a token the agent can make only the four
// harmless calls, in any domain. What only the operator may do, and the kernel's own commands, it cannot do with any token.
// It cannot act as another process, nor at another tick.
func TestAgentAtTheGate(t *testing.T) {
	t.Parallel()
	p := assemble(t)
	operator := p.connect(0)
	pid := operator.spawn(0, `{"allowed_syscalls":["*"],"resource_quotas":{"gpu":4}}`)
	operator.spawn(pid, `{"allowed_syscalls":["Memory.Get"]}`)
	agent := p.connect(pid)
	denied := func(dialect schema.Dialect, typ, data, text string) {
		t.Helper()
		want := codes{schema.OsMessage: 403.0, schema.OsEvent: "UNAUTHORIZED"}[dialect]
		if f := agent.failure(agent.speak(dialect, typ, data, "")); f.Code != want || !strings.Contains(f.Message, text) {
			t.Errorf("%s %s as an %s: %+v, want %v with %q", typ, data, dialect, f, want, text)
		}
	}
	for _, dialect := range dialects() {
		denied(dialect, "Syscall.Shutdown", `{}`, "only the operator may")
		denied(dialect, "Memory.Get", `{"pid":0,"key":"a"}`, "may not act as pid 0")
		denied(dialect, "Memory.Get", `{"pid":2,"key":"a"}`, "may not act as pid 2")
		if f := agent.failure(agent.speak(dialect, "Memory.List", `{"tick":1}`, "")); !strings.Contains(f.Message, "later than the kernel's") {
			t.Errorf("a tick to come as an %s: %+v", dialect, f)
		}
		for _, row := range schema.Syscalls() {
			if !row.Internal {
				continue
			}
			// The operator gets the same error: it is that of an unknown name.
			for _, c := range []*client{agent, operator} {
				f := c.failure(c.speak(dialect, row.Type, `{}`, ""))
				if f.Code != (codes{schema.OsMessage: 404.0, schema.OsEvent: "NOT_FOUND"}[dialect]) {
					t.Errorf("%s as an %s: %+v", row.Type, dialect, f)
				}
			}
		}
	}

	operator.call("Capability.Revoke", fmt.Sprintf(`{"pid":%d}`, pid), nil)
	for _, dialect := range dialects() {
		denied(dialect, "Memory.List", `{"tick":1}`, "may not call Memory.List") // before its tick is checked
	}
	before := operator.everything([]int64{pid, 2})
	for _, row := range schema.Syscalls() {
		if row.Grant == schema.Everyone || row.Grant == schema.OperatorOnly || row.Internal {
			continue
		}
		data, ok := minimal()[row.Type]
		if !ok {
			t.Errorf("no data is known here for %s", row.Type)
		}
		for _, dialect := range dialects() {
			denied(dialect, row.Type, data, fmt.Sprintf("pid %d may not call %s", pid, row.Type))
		}
	}
	if after := operator.everything([]int64{pid, 2}); !slices.Equal(before, after) {
		t.Errorf("after denials: %v, before: %v", after, before)
	}
	var out struct {
		Syscalls []string `json:"syscalls"`
	}
	agent.call("Syscall.List", `{}`, &out)
	for typ, data := range map[string]string{
		"Syscall.Ping": `{"payload":1}`, "Syscall.Echo": `{"message":"m"}`, "Syscall.Describe": `{"name":"Memory.Set"}`,
	} {
		for _, dialect := range dialects() {
			if a := agent.speak(dialect, typ, data, ""); a.Kind != "reply" {
				t.Errorf("%s without a token as an %s: %s", typ, dialect, a.Data)
			}
		}
	}
	if got, want := fmt.Sprint(out.Syscalls), "[Syscall.Describe Syscall.Echo Syscall.List Syscall.Ping]"; got != want {
		t.Errorf("the agent may call %s, want %s", got, want)
	}
}

// TestAgentWithOneRight grants an agent one syscall at a time, by its type: that one passes the gate, in either dialect,
// and is recorded as the agent's; the next one does not.
func TestAgentWithOneRight(t *testing.T) {
	t.Parallel()
	p := assemble(t)
	operator := p.connect(0)
	pid := operator.spawn(0, `{"allowed_syscalls":["*"]}`)
	operator.spawn(pid, `{"allowed_syscalls":["*"]}`)
	agent := p.connect(pid)
	for typ, data := range minimal() {
		operator.call("Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":[%q]}`, pid, typ), nil)
		other := "Memory.List"
		if typ == other {
			other = "Memory.Get"
		}
		for _, dialect := range dialects() {
			a := agent.speak(dialect, typ, data, "")
			if k := a.Metadata.Kernel; k == nil || k.PID != pid || k.LatencyUS < 1 || strings.Contains(string(a.Data), "may not call "+typ) {
				t.Errorf("%s, granted, as an %s: %s, proof %+v", typ, dialect, a.Data, k)
			}
			if strings.HasSuffix(typ, ".Subscribe") {
				agent = p.connect(pid) // on which nothing is pushed
			}
			f := agent.failure(agent.speak(dialect, other, minimal()[other], ""))
			if !strings.Contains(f.Message, "may not call "+other) {
				t.Errorf("%s beside %s as an %s: %+v", other, typ, dialect, f)
			}
		}
	}
}

// TestFullDiskOverTheWire fills the journal's disk for one write: the command is refused in either dialect and did not
// happen, and later calls continue.
func TestFullDiskOverTheWire(t *testing.T) {
	t.Parallel()
	for _, dialect := range dialects() {
		t.Run(dialect.String(), func(t *testing.T) {
			t.Parallel()
			p := assemble(t)
			c := p.connect(0)
			c.call("Memory.Set", `{"key":"a","value":1}`, nil)
			p.files.Arm(faultfs.Fault{N: 1, Err: syscall.ENOSPC})
			want := codes{schema.OsMessage: 503.0, schema.OsEvent: "UNAVAILABLE"}[dialect]
			f := c.failure(c.speak(dialect, "Memory.Set", `{"key":"a","value":2}`, ""))
			if f.Code != want || !strings.Contains(f.Message, "journal cannot be written") || p.files.Hit() != "write" {
				t.Errorf("got %+v after a failed %q, want %v", f, p.files.Hit(), want)
			}
			if a := c.ask("Memory.Get", `{"key":"a"}`); string(a.Data) != "1" {
				t.Errorf("value %s, want the one before", a.Data)
			}
			c.call("Memory.Set", `{"key":"a","value":3}`, nil)
			if a := c.call("Memory.Get", `{"key":"a"}`, nil); string(a.Data) != "3" {
				t.Errorf("value %s, want the one after", a.Data)
			}
		})
	}
}
