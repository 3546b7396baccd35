package kernel_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

const careful = `@id("careful") @ask("30m") @fix("write below test/")
forbid(principal, action in [Syscall::"Memory.Set", Syscall::"Memory.CompareAndSet"], resource) when {context.args.key like "prod/*"};
@id("brief") @ask("1s") forbid(principal, action == Syscall::"Memory.Delete", resource);
`

// waits sets how long a call waits for an approval.
func waits(d time.Duration) func(*config.Config) {
	return func(cfg *config.Config) { cfg.Approval.Wait = config.Duration(d) }
}

// question receives the next event of a follower, which must have the type, for a question in the state.
func (c *client) question(typ, id, state string) (s schema.ApprovalState) {
	c.t.Helper()
	a := c.event(schema.OsMessage, typ)
	if err := json.Unmarshal(a.Data, &s); err != nil || s.ID != id || s.State != state {
		c.t.Fatalf("%s %s, want %s %s", a.Type, a.Data, id, state)
	}
	return s
}

// decide answers a question.
func (c *client) decide(id, decision, more string) (s schema.ApprovalState) {
	c.t.Helper()
	c.call("Approval.Decide", fmt.Sprintf(`{"id":%q,"decision":%q%s}`, id, decision, more), &s)
	return s
}

// TestApprovedIsCountedOnce: a call that an approval allows is counted as one that its rule has decided.
func TestApprovedIsCountedOnce(t *testing.T) {
	t.Parallel()
	d := start(t, ruled(t, map[string]string{"policy.cedar": careful}), waits(time.Millisecond))
	operator, agent := d.dial(t), d.dial(t)
	agent.attach("worker", `,"capabilities":{"allowed_syscalls":["Memory.*"]}`)
	agent.refused(425, "Memory.Set", `{"key":"prod/x","value":1}`)
	operator.decide("q-1", "approve", "")
	agent.call("Memory.Set", `{"key":"prod/x","value":1}`, nil)
	var shown schema.PolicyShowOutput
	if operator.call("Policy.Show", `{}`, &shown); shown.Rules[0].Decided != 2 {
		t.Errorf("%+v, want two calls decided", shown.Rules)
	}
}

// TestApprovals: a call waits for the answer to a question, in any spelling and on any connection, and runs once if it is
// approved.
func TestApprovals(t *testing.T) {
	t.Parallel()
	d := start(t, ruled(t, map[string]string{"policy.cedar": careful}), waits(time.Hour))
	operator, follower, agent := d.dial(t), d.dial(t), d.dial(t)
	follower.call("Approval.Subscribe", `{}`, nil)
	pid := agent.attach("worker", `,"capabilities":{"allowed_syscalls":["Memory.*"]}`)
	id := agent.send("Memory.Set", `{"key":"prod/x","value":{"b":1,"a":"s"}}`, "")
	s := follower.question("Approval.Requested", "q-1", "waiting")
	if s.Rule != "careful" || s.Policy == "" || s.PID != pid || s.Agent != "worker" || s.Type != "Memory.Set" || s.Expires-s.Asked != 30*60*1000 ||
		string(s.Data) != `{"key":"prod/x","value":{"b":1,"a":"s"}}` || len(s.Digest) != 64 {
		t.Errorf("%+v", s)
	}
	other := d.dial(t)
	other.attach("worker", "")
	other.send("Memory.Set", `{"pid":`+fmt.Sprint(pid)+`,"value":{"a":"\u0073","b":1.0},"key":"/prod/x"}`, "")
	agent2 := d.dial(t)
	agent2.attach("another", `,"capabilities":{"allowed_syscalls":["Memory.*"]}`)
	agent2.send("Memory.Set", `{"key":"prod/x","value":{"b":1,"a":"s"}}`, "")
	follower.question("Approval.Requested", "q-2", "waiting") // that of another process is another question
	if s := operator.decide("q-1", "approve", ""); s.State != "approved" || !s.Advisory || s.Decided.Via != "socket" || s.Decided.Key != "" {
		t.Errorf("decided: %+v", s)
	}
	follower.question("Approval.Decided", "q-1", "approved")
	follower.question("Approval.Requested", "q-3", "waiting") // the other of the two connections
	operator.decide("q-3", "refuse", `,"why":"once is enough"`)
	follower.question("Approval.Decided", "q-3", "refused")
	first, second := agent, other
	a := first.next()
	if a.Kind != "reply" { // the order of the two is undefined
		first, second = other, agent
		if !strings.Contains(string(a.Data), "once is enough") {
			t.Errorf("refused: %s", a.Data)
		}
		a = first.next()
	} else {
		id = second.next().Metadata.Causation
	}
	if a.Kind != "reply" || id == "" {
		t.Errorf("approved: %s", a.Data)
	}
	second.refused(403, "Memory.Set", `{"key":"prod/x","value":{"b":1,"a":"s"}}`, "once is enough", "write below test/")
	operator.refused(409, "Approval.Decide", `{"id":"q-1","decision":"approve"}`, "q-1 is used already")
	operator.refused(409, "Approval.Decide", `{"id":"q-3","decision":"approve"}`, "q-3 is refused already")
	operator.refused(404, "Approval.Decide", `{"id":"q-9","decision":"approve"}`, "no question q-9")
	operator.refused(422, "Approval.Decide", `{"id":"q-2","decision":"refuse","for_seconds":1}`, "for_seconds")
	operator.decide("q-2", "approve", "")
	if a := agent2.next(); a.Kind != "reply" {
		t.Errorf("approved: %s", a.Data)
	}
	var list schema.ApprovalListOutput
	operator.call("Approval.List", `{"state":"used"}`, &list)
	if len(list.Approvals) != 2 || list.Approvals[0].ID != "q-1" || list.Approvals[1].ID != "q-2" {
		t.Errorf("used: %+v", list)
	}
	var metrics schema.AuditMetricsOutput
	operator.call("Audit.Metrics", `{}`, &metrics)
	if !strings.Contains(strings.Join(metrics.Warnings, "\n"), "approvals are advisory: 2, the last of them q-2, of pid 2,") {
		t.Errorf("warnings: %q", metrics.Warnings)
	}
}

// TestApproveOneRunAnother: an approval is for exactly one call. A call that differs in any way is a separate question.
func TestApproveOneRunAnother(t *testing.T) {
	t.Parallel()
	d := start(t, ruled(t, map[string]string{"policy.cedar": careful}), waits(0))
	operator, agent := d.dial(t), d.dial(t)
	pid := agent.attach("worker", `,"capabilities":{"allowed_syscalls":["Memory.*"]}`)
	agent.refused(425, "Memory.Set", `{"key":"prod/x","value":1}`, "approval q-1", "pwos approve q-1")
	operator.decide("q-1", "approve", "")
	next := 2
	for _, call := range []struct{ typ, data string }{
		{"Memory.Set", `{"key":"prod/x","value":2}`},
		{"Memory.Set", `{"key":"prod/x","value":"1"}`},
		{"Memory.Set", `{"key":"prod/x","value":[1]}`},
		{"Memory.Set", `{"key":"prod/X","value":1}`},
		{"Memory.Set", `{"key":"prod/x ","value":1}`},
		{"Memory.Set", `{"key":"prod/x","value":1.00000000000000001}`}, // refused: the number cannot be distinguished from 1
		{"Memory.CompareAndSet", `{"key":"prod/x","value":1}`},
	} {
		a := agent.ask(call.typ, call.data)
		if strings.Contains(call.data, "1.0000") {
			if !strings.Contains(string(a.Data), "has more digits than a number can represent") {
				t.Errorf("%s %s: %s", call.typ, call.data, a.Data)
			}
			continue
		}
		if want := fmt.Sprintf("approval q-%d,", next); !strings.Contains(string(a.Data), want) {
			t.Errorf("%s %s: %s, want %s", call.typ, call.data, a.Data, want)
		}
		next++
	}
	operator.refused(425, "Syscall.Call", fmt.Sprintf(`{"syscall":"memory","args":["set","prod/x",2],"pid":%d}`, pid), "approval q-2,")
	agent.call("Syscall.Call", `{"syscall":"memory","args":["set","prod/x",1]}`, nil)
	agent.refused(425, "Memory.Set", `{"key":"prod/x","value":1}`)
}

// TestApprovalExpiresMeanwhile: an expired question cannot be answered, and the next call asks again.
func TestApprovalExpiresMeanwhile(t *testing.T) {
	t.Parallel()
	d := start(t, ruled(t, map[string]string{"policy.cedar": careful}), waits(time.Hour))
	operator, agent := d.dial(t), d.dial(t)
	agent.attach("worker", `,"capabilities":{"allowed_syscalls":["Memory.*"]}`)
	agent.refused(425, "Memory.Delete", `{"key":"a"}`, "approval q-2,") // it has waited for q-1 until that expired
	operator.refused(409, "Approval.Decide", `{"id":"q-1","decision":"approve"}`, "q-1 expired at")
	var list schema.ApprovalListOutput
	operator.call("Approval.List", `{}`, &list)
	if len(list.Approvals) != 2 || list.Approvals[0].State != "expired" {
		t.Errorf("%+v", list)
	}
}

// TestApprovalOfWhoHasEnded: a call that waits for an answer is refused immediately when its process ends.
func TestApprovalOfWhoHasEnded(t *testing.T) {
	t.Parallel()
	d := start(t, ruled(t, map[string]string{"policy.cedar": careful}), waits(time.Hour))
	operator, follower, agent := d.dial(t), d.dial(t), d.dial(t)
	follower.call("Approval.Subscribe", `{}`, nil)
	pid := agent.attach("worker", `,"capabilities":{"allowed_syscalls":["Memory.*"]}`)
	agent.send("Memory.Set", `{"key":"prod/x","value":1}`, "")
	follower.question("Approval.Requested", "q-1", "waiting")
	operator.call("Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, pid), nil)
	if a := agent.next(); a.Kind != "error" || !strings.Contains(string(a.Data), "ended") {
		t.Errorf("answered %s %s", a.Kind, a.Data)
	}
}

// TestApprovalsOutlive: questions, approvals and refusals outlive the kernel, and are then about the same call.
func TestApprovalsOutlive(t *testing.T) {
	t.Parallel()
	d := start(t, ruled(t, map[string]string{"policy.cedar": careful}), waits(0))
	calls := map[string]string{"q-1": `{"key":"prod/1","value":1}`, "q-2": `{"key":"prod/2","value":1}`, "q-3": `{"key":"prod/3","value":1}`, "q-4": `{"key":"prod/4","value":1}`}
	agent := d.dial(t)
	agent.attach("worker", `,"capabilities":{"allowed_syscalls":["Memory.*"]}`)
	for _, id := range []string{"q-1", "q-2", "q-3", "q-4"} {
		agent.refused(425, "Memory.Set", calls[id], id)
	}
	operator := d.dial(t)
	operator.decide("q-1", "approve", "")
	operator.decide("q-2", "refuse", `,"why":"no"`)
	operator.decide("q-3", "approve", `,"for_seconds":3600`)
	for range 2 {
		d.restart(t)
		agent = d.dial(t)
		agent.attach("worker", "")
		agent.refused(403, "Memory.Set", calls["q-2"], "was refused: no")
		agent.call("Memory.Set", calls["q-3"], nil)
		agent.refused(425, "Memory.Set", calls["q-4"], "approval q-4,")
	}
	agent.call("Memory.Set", calls["q-1"], nil)
	d.restart(t)
	agent = d.dial(t)
	agent.attach("worker", "")
	agent.refused(425, "Memory.Set", calls["q-1"], "approval q-5,")
}

// TestApprovalIsTheOperators: no agent can answer or see questions, its own or others', with any grant.
func TestApprovalIsTheOperators(t *testing.T) {
	t.Parallel()
	d := start(t, ruled(t, map[string]string{"policy.cedar": careful}), waits(0))
	operator, agent := d.dial(t), d.dial(t)
	pid := agent.attach("worker", `,"capabilities":{"allowed_syscalls":["*","Approval.*"]}`)
	agent.refused(425, "Memory.Set", `{"key":"prod/x","value":1}`)
	for typ, data := range map[string]string{
		"Approval.Decide": `{"id":"q-1","decision":"approve"}`, "Approval.List": `{}`, "Approval.Subscribe": `{}`,
		"Approval.Requested": `{"id":"q-2"}`, "Approval.Use": `{"id":"q-1"}`,
	} {
		if a := agent.ask(typ, data); a.Kind != "error" {
			t.Errorf("%s: %s", typ, a.Data)
		}
	}
	agent.refused(422, "Job.Start", `{"name":"Approval.Subscribe"}`)
	agent.refused(425, "Memory.Set", `{"key":"prod/x","value":1}`)
	operator.refused(422, "Approval.Decide", fmt.Sprintf(`{"pid":%d,"id":"q-1","decision":"approve"}`, pid), "pid is not a member")
}

// TestManyApprovals: a thousand waiting calls are listed, answered and made, each once, and an agent may not have more.
func TestManyApprovals(t *testing.T) {
	t.Parallel()
	agents, each := 10, testkit.Rounds(30, 100, 100)
	d := start(t, ruled(t, map[string]string{"policy.cedar": careful}), waits(time.Hour))
	operator, follower := d.dial(t), d.dial(t)
	follower.call("Approval.Subscribe", `{}`, nil)
	var done sync.WaitGroup
	for i := range agents {
		pid := operator.spawn(0, `{"allowed_syscalls":["Memory.*"]}`)
		for j := range each {
			c := d.dial(t)
			done.Go(func() {
				c.send("Memory.Set", fmt.Sprintf(`{"pid":%d,"key":"prod/%d-%d","value":1}`, pid, i, j), "")
				if a := c.next(); a.Kind != "reply" {
					t.Errorf("%s", a.Data)
				}
			})
		}
	}
	asked, answered := 0, 0
	for asked < agents*each {
		if a := follower.next(); a.Type == "Approval.Requested" {
			asked++
		}
	}
	var ids []string
	for after := ""; ; {
		var list schema.ApprovalListOutput
		operator.call("Approval.List", `{"state":"waiting"`+after+`}`, &list)
		for _, s := range list.Approvals {
			ids = append(ids, s.ID)
		}
		if list.More == 0 {
			break
		}
		after = fmt.Sprintf(`,"after":%q`, ids[len(ids)-1])
	}
	if len(ids) != agents*each {
		t.Fatalf("%d are listed", len(ids))
	}
	for _, id := range ids {
		operator.decide(id, "approve", "")
	}
	for answered < agents*each {
		if a := follower.next(); a.Type == "Approval.Decided" {
			answered++
		}
	}
	done.Wait()
	var list struct{ Keys []string }
	operator.call("Memory.List", `{"prefix":"prod/","limit":1000}`, &list)
	if len(list.Keys) == 0 {
		t.Error("nothing was set")
	}
	var used schema.ApprovalListOutput
	operator.call("Approval.List", `{"state":"approved"}`, &used)
	if len(used.Approvals) != 0 {
		t.Errorf("%d approvals were not used", len(used.Approvals))
	}
}

// TestApprovalOfEveryKind: a call of any kind (one that reads, waits, takes steps, or has an effect outside) is made when
// it is approved, and uses its approval up once.
func TestApprovalOfEveryKind(t *testing.T) {
	t.Parallel()
	d := start(t, ruled(t, map[string]string{"policy.cedar": `@id("all") @ask("30m")
forbid(principal, action in [Syscall::"Audit.Log", Syscall::"Ipc.Receive", Syscall::"Syscall.Spawn", Syscall::"Process.List", Syscall::"Sum.Add", Syscall::"Clock.Advance", Syscall::"Job.Subscribe", Syscall::"Memory.Delete"], resource);`}), waits(time.Hour))
	operator, follower, agent, provider := d.dial(t), d.dial(t), d.dial(t), d.dial(t)
	follower.call("Approval.Subscribe", `{}`, nil)
	provider.provide("Sum.Add", func(asked) string { return `"data":{"sum":3}` })
	agent.attach("worker", `,"capabilities":{"allowed_syscalls":["*","Sum.Add"]}`)
	next := 0
	approve := func() {
		next++
		id := fmt.Sprint("q-", next)
		follower.question("Approval.Requested", id, "waiting")
		operator.decide(id, "approve", "")
		follower.question("Approval.Decided", id, "approved")
	}
	for _, call := range []struct{ typ, data, want string }{
		{"Audit.Log", `{"limit":1}`, `"entries":[{`},
		{"Ipc.Receive", `{"wait_ms":100}`, `"messages":[]`},
		{"Syscall.Spawn", `{"child_agent_id":"child"}`, `"child_pid":2`},
		{"Process.List", `{}`, `"worker/child"`},
		{"Clock.Advance", `{"ticks":2}`, `{"tick":2}`},
		{"Job.Subscribe", `{}`, `"success":true`},
		{"Memory.Delete", `{"key":"none"}`, ``},
	} {
		agent.send(call.typ, call.data, "")
		approve()
		if a := agent.next(); a.Kind != "reply" && call.want != "" || !strings.Contains(string(a.Data), call.want) {
			t.Errorf("%s: %s", call.typ, a.Data)
		}
	}
	agent.write(`{"kind":"query","type":"Sum.Add","data":{},"metadata":{"id":"sum","timestamp":1}}` + "\n")
	approve()
	if a := agent.next(); string(a.Data) != `{"sum":3}` {
		t.Errorf("registered: %s", a.Data)
	}
	runner := d.dial(t)
	runner.attach("worker", "")
	runner.begin(`{"name":"Process.List"}`)
	agent.event(schema.OsMessage, "Job.Started")
	approve()
	if a := agent.event(schema.OsMessage, "Job.Completed"); !strings.Contains(string(a.Data), "worker/child") {
		t.Errorf("job: %s", a.Data)
	}
	var list schema.ApprovalListOutput
	operator.call("Approval.List", `{}`, &list)
	for _, s := range list.Approvals {
		if want := map[bool]string{true: "approved", false: "used"}[s.Type == "Memory.Delete"]; s.State != want { // a failing call does not use its approval up
			t.Errorf("%s of %s is %s, want %s", s.ID, s.Type, s.State, want)
		}
	}
	uses := 0
	for _, e := range operator.wholeLog() {
		if e.Type == "Approval.Use" {
			uses++
		}
	}
	if len(list.Approvals) != next || uses != next-1 {
		t.Errorf("%d questions, %d approvals used, want %d", len(list.Approvals), uses, next)
	}
}
