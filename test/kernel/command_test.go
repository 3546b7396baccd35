package kernel_test

import (
	"strings"
	"testing"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/schema"
)

// effect is a command of the kernel, with a query whose answer shows its effect.
type effect struct {
	typ, data string
	ask       string // the query
	with      string // the query's data
	want      string // the text that its answer has after the command, and not before
}

// effects has every command that changes something. They are made in order, in a kernel with process 1 and its child 2,
// whose token is valid until tick 3, and with process 3, which is unrelated to both.
func effects() []effect {
	return []effect{
		{"Ipc.Receive", `{"pid":2}`, "Syscall.SendMsg", `{"receiver_pid":2,"payload":"fits"}`, `DELIVERED`},
		{"Memory.Set", `{"key":"new","value":"set"}`, "Memory.Get", `{"key":"new"}`, `"set"`},
		{"Memory.CompareAndSet", `{"key":"new","expected":"set","value":"changed"}`, "Memory.Get", `{"key":"new"}`, `"changed"`},
		{"Memory.Delete", `{"key":"new"}`, "Memory.Get", `{"key":"new"}`, `Key not found`},
		{"Syscall.Alloc", `{"pid":1,"resource_id":"gpu","amount":1}`, "Capability.Get", `{"pid":1}`, `"held":{"gpu":2.5}`},
		{"Syscall.Release", `{"pid":1,"resource_id":"gpu","amount":2}`, "Capability.Get", `{"pid":1}`, `"held":{"gpu":0.5}`},
		{"Syscall.Spawn", `{"pid":1,"child_agent_id":"new"}`, "Process.List", `{}`, `/new"`},
		{"Process.Pause", `{"target_pid":1}`, "Process.Get", `{"pid":1}`, `"paused":true`},
		{"Process.Resume", `{"all":true}`, "Process.Get", `{"pid":1}`, `pwos.local/"}`},
		{"Syscall.Register", `{"name":"Sum.Add","kind":"query","input":{},"provider":"connection"}`, "Syscall.Describe", `{"name":"Sum.Add"}`, `"query"`},
		{"Syscall.Unregister", `{"name":"Sum.Add"}`, "Syscall.Describe", `{"name":"Sum.Add"}`, `no syscall`},
		{"Job.Start", `{"name":"Clock.Get","at":4102444800000}`, "Job.List", `{}`, `"job-1"`},
		{"Job.Cancel", `{"jobId":"job-1"}`, "Job.Status", `{"jobId":"job-1"}`, `"canceled"`},
		{"Clock.Advance", `{"ticks":5}`, "Clock.Get", `{}`, `{"tick":5}`},
		{"Capability.RevokeExpired", `{}`, "Capability.Get", `{"pid":2}`, `has no token`},
		{"Capability.Grant", `{"pid":2,"allowed_syscalls":["Memory.Get"]}`, "Capability.Get", `{"pid":2}`, `["Memory.Get"]`},
		{"Capability.GrantDefault", `{"pid":2}`, "Capability.Get", `{"pid":2}`, `"SYS_ALLOC"`},
		{"Capability.Revoke", `{"pid":2}`, "Capability.Get", `{"pid":2}`, `has no token`},
		{"Syscall.CommitDelta", `{"pid":1,"changes":{"mood":"wild"}}`, "Syscall.GetState", `{"pid":1}`, `"mood":"wild"`},
		{"Syscall.Rollback", `{"pid":1,"to_tick":4}`, "Syscall.GetState", `{"pid":1}`, `"mood":"calm"`},
		{"Syscall.Checkpoint", `{"pid":1}`, "Syscall.Checkpoint", `{"pid":1}`, `"checkpoint_id":4`},
		{"Syscall.SendMsg", `{"receiver_pid":1,"payload":"sent"}`, "Ipc.Receive", `{"pid":1,"max":9}`, `"sent"`},
		{"Ipc.Broadcast", `{"payload":"all"}`, "Ipc.Receive", `{"pid":1,"max":9}`, `"all"`},
		{"Syscall.Terminate", `{"target_pid":2}`, "Process.Get", `{"pid":2}`, `"state":"TERMINATED"`},
	}
}

// smallMailboxes have room for one message, so that a sender notices when it has been received.
func smallMailboxes(cfg *config.Config) { cfg.Ipc.Mailbox = 1 }

// TestCommandsChangeState makes every command that the kernel lists, in either dialect: a query shows its effect after the
// command, and not before. These commands are left out: Echo, Seal, Shutdown, Host.ToolUse and Process.RestoreFiles
// (kernel/process) have no effect that a query shows. The effects of subscriptions and of Ipc.Ack are events
// (TestMessagesPushed, TestRecordFollowed, TestJobs, TestAck, TestApprovals). Others need more than this test has:
// Approval.Decide a question (TestApprovals), Process.Attach a connection of its own (TestAttach), Syscall.Complete and
// Syscall.Progress a call (TestProviders, TestProgress), Policy.Reload files (TestPolicyInvalid), Message.Undo and
// Audit.Redact an entry (TestUndo, TestRedactLive), Step.Begin, Step.End, Prompt.Submit, Step.Undo and Step.Redact a program (scripts steps, stepverbs and redactsteps), Review.Apply and Review.Discard a copy (script review), Audit.Archive a directory (TestArchiveRestart), Http.Fetch a server
// (test/http), and some a root (test/agents).
func TestCommandsChangeState(t *testing.T) {
	t.Parallel()
	for _, dialect := range dialects() {
		t.Run(dialect.String(), func(t *testing.T) {
			t.Parallel()
			c := start(t, smallMailboxes).dial(t)
			c.world()
			c.spawn(0, `{"allowed_syscalls":["*"]}`)
			made := map[string]bool{"Syscall.Echo": true, "Crypto.Seal": true, "Syscall.Shutdown": true, "Ipc.Subscribe": true, "Audit.Subscribe": true, "Job.Subscribe": true, "Approval.Subscribe": true, "Approval.Decide": true, "Ipc.Ack": true, "Http.Fetch": true, "Process.Attach": true, "Syscall.Complete": true, "Syscall.Progress": true, "Host.ToolUse": true, "Policy.Reload": true, "Cluster.Drop": true, "Message.Undo": true, "Process.RestoreFiles": true, "Audit.Archive": true, "Audit.Redact": true, "Step.Begin": true, "Step.End": true, "Prompt.Submit": true, "Step.Undo": true, "Step.Redact": true, "Review.Apply": true, "Review.Discard": true, "Step.Subscribe": true}
			for _, typ := range []string{"Kernel.Ingest", "FileSystem.Hydrate", "Syscall.Call"} { // test/agents
				made[typ] = true
			}
			for _, e := range effects() {
				made[e.typ] = true
				if a := c.ask(e.ask, e.with); strings.Contains(string(a.Data), e.want) {
					t.Errorf("before %s: %s answers %s", e.typ, e.ask, a.Data)
				}
				if a := c.speak(dialect, e.typ, e.data, ""); a.Kind != "reply" {
					t.Fatalf("%s %s: %s", e.typ, e.data, a.Data)
				}
				if a := c.ask(e.ask, e.with); !strings.Contains(string(a.Data), e.want) {
					t.Errorf("after %s: %s answers %s, want %s", e.typ, e.ask, a.Data, e.want)
				}
			}
			for _, typ := range c.listed(schema.KindCommand) {
				if !made[typ] {
					t.Errorf("%s is a command whose effect is not looked for here", typ)
				}
			}
		})
	}
}
