package kernel_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// shownBudgets returns the answer of Budget.Show for the operator, by PID.
func (c *client) shownBudgets() map[int64]schema.BudgetState {
	c.t.Helper()
	out, err := schema.BudgetShow.Decode(c.call("Budget.Show", `{}`, nil).Data)
	testkit.Must(c.t, err)
	all := make(map[int64]schema.BudgetState)
	for _, b := range out.Budgets {
		all[b.PID] = b
	}
	return all
}

// TestSubscriptionIsOneCall: pushes cost nothing, while there is time left.
func TestSubscriptionIsOneCall(t *testing.T) {
	t.Parallel()
	d := start(t)
	operator, c := d.dial(t), d.dial(t)
	c.attach("a", `,"capabilities":{"allowed_syscalls":["Ipc.*"],"budget":{"calls":3}}`)
	c.call("Ipc.Subscribe", `{}`, nil)
	for i := range 20 {
		operator.call("Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":1,"payload":%d}`, i), nil)
		c.letter(schema.OsMessage)
	}
	if b := operator.shownBudgets()[1].Calls; b.Spent != "1" || b.Reserved != "0" || b.Left != "2" {
		t.Errorf("after a subscription, with 20 events: %+v", *b)
	}
}

// TestPausedCallsArePaidFor: calls that have waited for the end of their process's pause cost the same as others.
func TestPausedCallsArePaidFor(t *testing.T) {
	t.Parallel()
	d := start(t)
	operator, c := d.dial(t), d.dial(t)
	c.attach("a", `,"capabilities":{"allowed_syscalls":["Memory.*"],"budget":{"calls":2}}`)
	operator.call("Process.Pause", `{"target_pid":1}`, nil)
	for i := range 4 {
		c.send("Memory.Set", fmt.Sprintf(`{"key":"k","value":%d}`, i), "")
	}
	operator.call("Process.Resume", `{"target_pid":1}`, nil)
	for i := range 4 {
		if a := c.next(); (a.Kind == "reply") != (i < 2) {
			t.Errorf("call %d: %s", i, a.Data)
		}
	}
	if b := operator.shownBudgets()[1].Calls; b.Spent != "2" || b.Reserved != "0" || b.Left != "0" {
		t.Errorf("%+v", *b)
	}
}

// TestRepeatedCallsAreFree: a repeated call whose answer was lost gets its first outcome with its idempotency key, even if
// nothing of the budget is left.
func TestRepeatedCallsAreFree(t *testing.T) {
	t.Parallel()
	d := start(t)
	operator, c := d.dial(t), d.dial(t)
	c.attach("a", `,"capabilities":{"allowed_syscalls":["*"],"budget":{"calls":5,"tokens":10}}`)
	spawn := `{"child_agent_id":"c","capabilities":{"allowed_syscalls":["Memory.*"],"budget":{"calls":4,"tokens":10}}}`
	first := c.askWith("Syscall.Spawn", spawn, `,"idempotencyKey":"k"`)
	if again := c.askWith("Syscall.Spawn", spawn, `,"idempotencyKey":"k"`); first.Kind != "reply" || string(again.Data) != string(first.Data) {
		t.Errorf("answered %s, then %s", first.Data, again.Data)
	}
	for range 2 {
		if b := operator.shownBudgets()[1].Calls; b.Spent != "1" || b.Below != "4" || b.Left != "0" {
			t.Errorf("%+v", *b)
		}
		d.restart(t)
		operator = d.dial(t)
	}
}

// number returns a whole amount.
func number(t *testing.T, d schema.Decimal) int64 {
	t.Helper()
	n, err := strconv.ParseInt(string(d), 10, 64)
	if err != nil {
		t.Error(err)
	}
	return n
}

// TestRacersNeverOverspend has 64 connections of one agent that call as often as allowed, in several domains, and spawn
// children that get a part of the budget and end. Exactly as many calls are made as the budget allows.
func TestRacersNeverOverspend(t *testing.T) {
	t.Parallel()
	d := start(t)
	operator := d.dial(t)
	const given = 500
	grant := fmt.Sprintf(`,"capabilities":{"allowed_syscalls":["*"],"budget":{"calls":%d,"fetches":10}}`, given)
	if f := operator.failure(operator.ask("Memory.Get", `{"key":"none"}`)); f.Code != 404.0 { // the operator has no budget
		t.Fatal(f)
	}
	var made atomic.Int64
	var racers sync.WaitGroup
	for i := range 64 {
		c := d.dial(t)
		c.attach("racer", grant)
		racers.Go(func() {
			for n := 0; ; n++ {
				typ, data := "Memory.Set", fmt.Sprintf(`{"key":"k%d","value":%d}`, i, n)
				switch (i + n) % 8 {
				case 1:
					typ, data = "Clock.Get", `{}`
				case 2:
					typ, data = "Process.List", `{}`
				case 3:
					typ, data = "Ipc.Receive", `{}`
				case 4:
					typ, data = "Memory.Get", `{"key":"none"}` // it is answered with 404
				case 5:
					typ = "Syscall.Spawn"
					data = fmt.Sprintf(`{"child_agent_id":"c%d-%d","capabilities":{"allowed_syscalls":["Memory.*"],"budget":{"calls":2}}}`, i, n)
				}
				a := c.ask(typ, data)
				if a.Kind == "error" {
					if f := c.failure(a); f.Code == 429.0 {
						return
					} else if f.Code != 404.0 {
						t.Errorf("%s: %+v", typ, f)
						return
					}
				}
				made.Add(1)
				if typ == "Syscall.Spawn" {
					var out schema.SpawnOutput
					if err := json.Unmarshal(a.Data, &out); err != nil {
						t.Error(err)
						return
					}
					if a := c.ask("Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, out.ChildPID)); a.Kind != "error" {
						made.Add(1)
					}
				}
			}
		})
	}
	racers.Wait()
	racer := operator.shownBudgets()[1].Calls
	if racer == nil {
		t.Fatal("the agent has no budget")
	}
	var below int64
	for pid, b := range operator.shownBudgets() {
		if pid != 1 {
			below += number(t, b.Calls.Given)
		}
	}
	spent, left := number(t, racer.Spent), number(t, racer.Left)
	if spent != made.Load() || spent+left+below != given || left > 2 || number(t, racer.Reserved) != 0 {
		t.Errorf("%d calls were made of %d; the budget is %+v, and that of the children %d", made.Load(), given, *racer, below)
	}

	before := operator.shownBudgets()
	d.restart(t)
	operator = d.dial(t)
	if after := operator.shownBudgets(); fmt.Sprint(before[1].Calls) != fmt.Sprint(after[1].Calls) {
		t.Errorf("after a restart the budget is %+v, before it was %+v", after[1].Calls, before[1].Calls)
	}
	c := d.dial(t)
	c.attach("racer", "")
	if left == 0 {
		if f := c.failure(c.ask("Clock.Get", `{}`)); f.Code != 429.0 {
			t.Errorf("answered %+v", f)
		}
	}
}

// TestMoreThanTheBudget: a rule requires an approval instead of a 429. An approved call is made and counted, below zero.
// Every such call is a question, and calls without a rule are refused.
func TestMoreThanTheBudget(t *testing.T) {
	t.Parallel()
	d := start(t, waits(0), ruled(t, map[string]string{"policy.cedar": `@id("all") @ask("30m") forbid(principal, action == Syscall::"Memory.Set", resource) when {context.args.key == "k"};
@id("more") @ask("30m") forbid(principal, action == Syscall::"Memory.Set", resource) when {context.exhausted == "calls"};
@id("none") forbid(principal, action == Syscall::"Memory.Set", resource) when {context.args.key == "never"};`}))
	operator, c := d.dial(t), d.dial(t)
	c.attach("a", `,"capabilities":{"allowed_syscalls":["Memory.*"],"budget":{"calls":1}}`)
	set := `{"key":"k","value":1}`
	c.refused(425, "Memory.Set", set, "q-1")
	operator.decide("q-1", "approve", `,"for_seconds":3600`)
	c.call("Memory.Set", set, nil)
	// Nothing is left now: a permitted call still needs a budget.
	c.refused(425, "Memory.Set", set, "q-2")
	c.refused(425, "Memory.Set", set, "q-2")
	c.refused(429, "Memory.Get", `{"key":"k"}`, "budget")
	c.refused(429, "Memory.Set", `{"key":"never","value":1}`, "budget")
	var list schema.ApprovalListOutput
	operator.call("Approval.List", `{"state":"waiting"}`, &list)
	if len(list.Approvals) != 1 || list.Approvals[0].Exhausted != "calls" || list.Approvals[0].Rule != "more" {
		t.Errorf("asked: %+v", list.Approvals)
	}
	var check schema.CheckOutput
	operator.call("Capability.Check", `{"pid":1,"syscall":"Memory.Set","data":`+set+`}`, &check)
	if n := len(check.Stages); check.Allowed || n < 3 || check.Stages[n-1].Verdict != "asks" || check.Stages[n-3].Stage != "budget" || !strings.Contains(check.Stages[n-3].Why, "needs an approval") {
		t.Errorf("explained: %+v", check)
	}
	operator.decide("q-2", "approve", "")
	c.call("Memory.Set", set, nil)
	c.refused(425, "Memory.Set", set, "q-3")
	operator.decide("q-3", "refuse", `,"why":"enough"`)
	c.refused(403, "Memory.Set", set, "enough")
	for range 2 {
		if b := operator.shownBudgets()[1].Calls; b.Given != "1" || b.Spent != "2" || b.Reserved != "0" || b.Left != "-1" {
			t.Errorf("%+v", *b)
		}
		d.restart(t)
		operator = d.dial(t)
	}
}
