package kernel_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
)

// traced has the members of an entry of Audit.Log about its cause.
type traced struct {
	Seq         int64  `json:"seq"`
	Time        int64  `json:"time"`
	Type        string `json:"type"`
	ID          string `json:"id"`
	Correlation string `json:"correlation"`
	Causation   string `json:"causation"`
}

// wholeLog reads the audit log to its end, page by page.
func (c *client) wholeLog() (all []traced) {
	c.t.Helper()
	for since := int64(0); ; {
		var page struct {
			Entries []traced `json:"entries"`
			Next    int64    `json:"next"`
		}
		c.call("Audit.Log", fmt.Sprintf(`{"since_seq":%d,"limit":7}`, since), &page)
		for _, e := range page.Entries {
			if e.Type != "Kernel.Booted" { // there is one for each start
				all = append(all, e)
			}
		}
		if since = page.Next; since == 0 {
			return all
		}
	}
}

// sagas are calls in which other domains take part. Together they cause every command of the kernel itself.
func sagas() [][2]string {
	return [][2]string{
		{"Syscall.Spawn", `{"child_agent_id":"a","capabilities":{"allowed_syscalls":["*"],"resource_quotas":{"gpu":2}}}`},
		{"Syscall.Spawn", `{"pid":1,"child_agent_id":"b"}`},
		{"Syscall.Spawn", `{"pid":2,"child_agent_id":"c"}`},
		{"Syscall.Alloc", `{"pid":1,"resource_id":"gpu","amount":1}`},
		{"Ipc.Broadcast", `{"payload":1}`},
		{"Clock.Advance", `{"ticks":1}`},
		{"Syscall.CommitDelta", `{"pid":1}`},
		{"Syscall.Rollback", `{"pid":1,"to_tick":0}`},
		{"Syscall.SendMsg", `{"pid":1,"receiver_pid":0,"payload":2}`},
		{"Syscall.Terminate", `{"target_pid":1}`},
	}
}

// TestTrace follows the effects of calls in other domains back to the calls, through the audit log. Each of the kernel's
// own commands has the correlation of its call and names it as its cause; that call is in the log too, and started no
// later. Its entry follows them, since it has the outcome.
func TestTrace(t *testing.T) {
	t.Parallel()
	for _, dialect := range dialects() {
		t.Run(dialect.String(), func(t *testing.T) {
			t.Parallel()
			d := start(t)
			c := d.dial(t)
			causes := make(map[string]string) // correlation of each call by its id
			for i, call := range sagas() {
				correlation := fmt.Sprint("work-", i)
				a := c.speak(dialect, call[0], call[1], fmt.Sprintf(`,"correlation":%q`, correlation))
				if a.Kind != "reply" || a.Metadata.Correlation != correlation {
					t.Fatalf("%s %s: %s, correlation %q", call[0], call[1], a.Data, a.Metadata.Correlation)
				}
				causes[a.Metadata.Causation] = correlation
			}
			d.restart(t)
			log := d.dial(t).wholeLog()
			byID := make(map[string]traced)
			for _, e := range log {
				byID[e.ID] = e
			}
			steps := checkSteps(t, log, byID, causes)
			for _, row := range schema.Syscalls() {
				if row.Internal && !pushing[row.Type] && !ofPrograms(row.Type) && !endsEffect(row.Type) && steps[row.Type] == 0 && !noted[row.Type] {
					t.Errorf("no call has caused %s: the test does not cover it", row.Type)
				}
			}
		})
	}
}

// pushing are the kernel's own commands that continue and end subscriptions, which TestMessagesPushed, TestRecordFollowed,
// TestListFollowed and TestJobs test.
var pushing = map[string]bool{"Capability.Watch": true, "Ipc.Deliver": true, "Ipc.Return": true, "Process.Watch": true, "Audit.Watch": true, "Job.Watch": true, "Approval.Watch": true, "Step.Watch": true}

// noted are the kernel's own commands that no call of this test causes. Other tests cover some of them: Syscall.Invoke is the
// call of a registered syscall itself (TestRegister), a job runs when it is due (TestJobTrace), a rule asks (TestApprovals), an
// entry vouches for a redacted line (journal.TestRedaction), and the command that undoes an entry names its message as its
// cause (test/state, TestUndoIsCausedByWhatItUndoes).
var noted = map[string]bool{"Syscall.Invoke": true, "Kernel.Booted": true, "Kernel.TakeOver": true, "Kernel.LoginFailed": true, "Kernel.Throttled": true, "Job.Begin": true, "Job.End": true, "Policy.Loaded": true, "Approval.Requested": true, "Approval.Use": true, "Audit.Redacted": true, "Memory.Restore": true, "Capability.Restore": true, "Ipc.Unsend": true, "Ipc.Accept": true, "Ipc.Taken": true, "Ipc.Settle": true, "Process.Settle": true, "Cluster.Refused": true, "Ipc.Resend": true}

// ofPrograms reports whether only agents with programs cause a command: test/agents, test/http and test/scripts test those.
func ofPrograms(typ string) bool {
	return typ == "Process.NoteStart" || typ == "Process.NoteEnd" || typ == "Program.Exec" || typ == "Step.Ended" || strings.HasPrefix(typ, "Net.")
}

// checkSteps checks the kernel's own commands in a log, and counts them by type.
func checkSteps(t *testing.T, log []traced, byID map[string]traced, causes map[string]string) map[string]int {
	t.Helper()
	count := make(map[string]int)
	for _, step := range log {
		row, _ := schema.Lookup(step.Type)
		if row == nil || !row.Internal {
			continue
		}
		count[step.Type]++
		cause, ok := byID[step.Causation]
		if !ok || causes[step.Causation] == "" {
			t.Errorf("%d %s: its cause %q is not a call of the test in the log", step.Seq, step.Type, step.Causation)
			continue
		}
		if step.Correlation != causes[step.Causation] || cause.Correlation != step.Correlation {
			t.Errorf("%d %s: correlation %q, of its cause %q", step.Seq, step.Type, step.Correlation, cause.Correlation)
		}
		if cause.Time > step.Time || step.ID == "" || byID[step.ID] != step {
			t.Errorf("%d %s of time %d: its cause is of time %d; its id %q", step.Seq, step.Type, step.Time, cause.Time, step.ID)
		}
	}
	return count
}

// TestTraceOfNothing makes a call without metadata, as the older dialect allows: the kernel invents neither a cause nor a
// correlation for its effects.
func TestTraceOfNothing(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	c.write(`{"type":"command","name":"Syscall.Spawn","payload":{"child_agent_id":"a"}}` + "\n")
	if a := c.next(); a.Type != "response" || a.Metadata.Causation != "" || a.Metadata.Correlation != "" {
		t.Errorf("answer: %+v", a)
	}
	steps := 0
	for _, e := range c.wholeLog() {
		if row, _ := schema.Lookup(e.Type); row != nil && row.Internal {
			steps++
			if e.Causation != "" || e.Correlation != "" {
				t.Errorf("%s: causation %q, correlation %q", e.Type, e.Causation, e.Correlation)
			}
		}
	}
	if steps == 0 {
		t.Error("a spawn without steps")
	}
}

// endsEffect reports whether a type is the outcome of an effect, which follows its call. That it names its cause is tested
// in test/http.
func endsEffect(typ string) bool {
	for _, row := range schema.Syscalls() {
		if row.Outcome == typ {
			return true
		}
	}
	return false
}
