package kernel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/schema"
)

// explain queries the decision about a call: its own, or that of a process, which more names.
func (c *client) explain(typ, data, more string) (out schema.CheckOutput) {
	c.t.Helper()
	c.call("Capability.Check", fmt.Sprintf(`{"syscall":%q,"data":%s%s}`, typ, data, more), &out)
	return out
}

// foretells makes a call, and reports an error if its answer differs from the prediction.
func (c *client) foretells(said schema.CheckOutput, typ, data string) {
	c.t.Helper()
	a := c.ask(typ, data)
	if said.Allowed != (a.Kind == "reply" && !strings.HasPrefix(string(a.Data), `{"decision":"deny"`)) {
		c.t.Errorf("%s %s was explained with %+v, and answers %s", typ, data, said, a.Data)
	}
	if a.Kind == "error" {
		if f := c.failure(a); said.Reason != f.Message || fmt.Sprint(said.Code) != fmt.Sprint(f.Code) {
			c.t.Errorf("%s %s was explained with %q (%d), and answers %+v", typ, data, said.Reason, said.Code, f)
		}
	}
}

// TestExplain queries the decision before every call: the query changes nothing, and the call is answered as predicted.
func TestExplain(t *testing.T) {
	t.Parallel()
	d := start(t)
	operator := d.dial(t)
	pids := operator.world()
	before := operator.everything(pids)
	said := make(map[string]schema.CheckOutput)
	for _, e := range effects() {
		said[e.typ+e.data] = operator.explain(e.typ, e.data, "")
	}
	for typ, data := range minimal() {
		operator.explain(typ, data, fmt.Sprintf(`,"pid":%d`, pids[0]))
		operator.explain(typ, data, fmt.Sprintf(`,"pid":%d`, pids[1]))
		operator.explain(typ, data, "")
	}
	operator.explain("Memory.Get", `{"key":"k/1","tick":77}`, "")
	operator.explain("Syscall.Shutdown", `{}`, "")
	if diff := cmp.Diff(before, operator.everything(pids)); diff != "" {
		t.Errorf("what can be read, before and after (-before +after):\n%s", diff)
	}
	if log := d.journal(t); strings.Count(log, `"type":"Capability.Grant"`) != 0 {
		t.Errorf("a call that was asked about is in the journal")
	}
	for typ, list := range questions() {
		if typ == "Step.Get" || typ == "Step.Diff" {
			continue // which steps there are is found out beside the loop, once what has ended is recorded
		}
		for _, data := range list {
			operator.foretells(operator.explain(typ, data, ""), typ, data)
		}
	}
	for _, e := range effects() {
		operator.foretells(operator.explain(e.typ, e.data, ""), e.typ, e.data)
	}
}

// TestExplainedRefusals: each stage that refuses is named, with its fix.
func TestExplainedRefusals(t *testing.T) {
	t.Parallel()
	d := start(t, ruled(t, map[string]string{"policy.cedar": noProd + `@id("small") forbid(principal, action == Syscall::"Sum.Add", resource) when {context.args.data like "*9*"};` + "\n"}))
	operator, parent := d.dial(t), d.dial(t)
	pid := parent.attach("worker", `,"capabilities":{"allowed_syscalls":["Memory.*","Ipc.*","Capability.Check","Syscall.Spawn","Syscall.Alloc","Tool:claude/Read","Call:mcp/fs/read"],"resource_quotas":{"gpu":1}}`)
	child := operator.spawn(pid, `{"allowed_syscalls":["Memory.Get"]}`)
	operator.call("Syscall.Register", registering("Sum.Add", ""), nil)
	operator.call("Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["Sum.Add"],"mode":"add"}`, pid), nil)
	tests := []struct {
		typ, data string
		stage     string
		id        string
		why, fix  string
	}{
		{"Memory.Set", `{"key":"/prod/x","value":1}`, "policy", "policy.denied", "no-prod", "write below test/"},
		{"Syscall.Call", `{"syscall":"memory","args":["set","prod/x",1]}`, "policy", "policy.denied", "no-prod", "write below test/"},
		{"Memory.Set", `{"key":"prod/x","valueRef":{"scheme":"data","path":"application/json,[1]"}}`, "policy", "policy.denied", "no-prod", "write below test/"},
		{"Memory.Set", `{"key":"test/x","valueRef":{"scheme":"data","path":"application/json,["}}`, "data", "wire.invalid_input", "", "schema"},
		{"Sum.Add", `{"n":9}`, "policy", "policy.denied", "small", ""},
		{"Sum.Add", `{"n":1}`, "", "", "", ""},
		{"Sum.Add", `[1]`, "handler", "wire.invalid_input", "", "Syscall.Describe"},
		{"Memory.Get", `{"key":"test/x"}`, "handler", "memory.not_found", "test/x", "Memory.List"},
		{"Memory.Get", `{"kee":"test/x"}`, "data", "wire.invalid_input", "kee", "Syscall.Describe"},
		{"Memory.Get", `7`, "data", "wire.invalid_input", "", "Syscall.Describe"},
		{"Memory.Gett", `{}`, "data", "wire.unknown_syscall", "Memory.Get?", "Syscall.List"},
		{"Memory.Get", `{"key":"a","tick":9}`, "tick", "clock.ahead", "tick", ""},
		{"Memory.Get", `{"key":"a","pid":99}`, "identity", "capability.not_yours", "pid 99", "leave out pid"},
		{"SYS_ALLOC", `{"resource_id":"gpu","amount":2}`, "handler", "resource.quota_exceeded", "quota of gpu", ""},
		{"Clock.Get", `{}`, "token", "capability.denied", "Clock.Get", "cap grant"},
		{"Host.ToolUse", `{"host":"claude","session":"s","tool":"Read","input":{}}`, "", "", "", ""},
		{"Host.ToolUse", `{"host":"claude","session":"s","tool":"Bash","input":{}}`, "token", "capability.denied", "claude/Bash", "--add Tool:claude/Bash"},
		{"Host.ToolUse", `{"host":"claude/x","session":"s","tool":"Bash","input":{}}`, "data", "wire.invalid_input", "host must be", ""},
		{"Syscall.Call", `{"syscall":"mcp/fs/write","args":[{}]}`, "token", "capability.denied", "mcp/fs/write", "--add Call:mcp/fs/write"},
		{"Syscall.Shutdown", `{}`, "token", "capability.operator_only", "operator", ""},
		{"Capability.Check", `{"syscall":"Memory.Get","data":{"key":"nope"}}`, "", "", "", ""},
	}
	for _, test := range tests {
		for _, c := range []*client{parent, operator} {
			more := ""
			if c == operator {
				more = fmt.Sprintf(`,"pid":%d`, pid)
			}
			out := c.explain(test.typ, test.data, more)
			last := out.Stages[len(out.Stages)-1]
			if test.stage == "" {
				if !out.Allowed || out.Reason != "" || last.Stage != "handler" {
					t.Errorf("%s %s: %+v", test.typ, test.data, out)
				}
				continue
			}
			if out.Allowed || last.Stage != test.stage || last.Verdict != "denies" || out.Error != test.id || !strings.Contains(last.Why, test.why) ||
				last.Fix == "" || !strings.Contains(last.Fix, test.fix) {
				t.Errorf("%s %s: %+v, want %s by %s", test.typ, test.data, out, test.id, test.stage)
			}
			ruled := test.stage == "policy"
			if (last.Rule != "") != ruled || (last.At != "") != (ruled && c == operator) || (last.Exception != "") != (ruled && c == operator) {
				t.Errorf("%s %s: by rule %q at %q, exception %q", test.typ, test.data, last.Rule, last.At, last.Exception)
			}
			if ruled && c == parent && strings.Contains(fmt.Sprint(out), ".cedar") {
				t.Errorf("%s %s: the agent's answer has the place of the rule: %+v", test.typ, test.data, out)
			}
		}
		if test.typ != "Sum.Add" && test.typ != "SYS_ALLOC" && test.typ != "Memory.Gett" {
			parent.foretells(parent.explain(test.typ, test.data, ""), test.typ, test.data)
		}
	}
	var shown schema.PolicyShowOutput
	operator.call("Policy.Show", `{}`, &shown)
	if shown.Rules[0].Decided != 3 {
		t.Errorf("no-prod has decided %d calls, want the 3 that were made", shown.Rules[0].Decided)
	}

	// For a descendant an agent sees the decision of the gate, for an unrelated process nothing.
	above := operator.explain("Memory.Get", `{"key":"nope"}`, fmt.Sprintf(`,"pid":%d`, child))
	if above.Allowed || above.Stages[3].Why != "pid 1 has granted pid 2 Memory.Get, and the operator has granted pid 1 Memory.*" {
		t.Errorf("a child's call: %+v", above)
	}
	if out := parent.explain("Memory.Get", `{"key":"nope"}`, fmt.Sprintf(`,"pid":%d`, child)); !out.Allowed ||
		slices.ContainsFunc(out.Stages, func(s schema.CheckStage) bool { return s.Stage == "handler" }) {
		t.Errorf("to its parent: %+v", out)
	}
	parent.refused(403, "Capability.Check", `{"pid":0,"syscall":"Memory.Get","data":{"key":"nope"}}`, "none of its descendants")
	parent.refused(403, "Capability.Check", `{"pid":0,"syscall":"Memory.Get","data":{"kee":"nope"}}`, "none of its descendants")
	if out := parent.explain("Memory.Set", `{"key":"test/x","valueRef":{"scheme":"data","path":"application/json,["}}`, fmt.Sprintf(`,"pid":%d`, child)); out.Allowed {
		t.Errorf("a reference of its child: %+v", out)
	}
	var both schema.CheckOutput
	operator.call("Capability.Check", `{"syscall":"SYS_ALLOC","resource_id":"gpu","data":{"resource_id":"gpu","amount":2}}`, &both)
	if both.Allowed || both.Error != "wire.invalid_input" {
		t.Errorf("data, and a resource beside it: %+v", both)
	}
}

// TestExplainKeepsSecrets: the data of a call in a query stays out of the journal.
func TestExplainKeepsSecrets(t *testing.T) {
	t.Parallel()
	d := start(t)
	operator := d.dial(t)
	operator.explain("Memory.Set", `{"key":"a","value":"hush-hush"}`, "")
	if log := d.journal(t); !strings.Contains(log, `Capability.Check`) || strings.Contains(log, "hush-hush") {
		t.Errorf("the journal has the data of a call that was asked about, or no entry")
	}
}

// TestExplainedHost: for a fetch the answer names the host pattern that allows it.
func TestExplainedHost(t *testing.T) {
	t.Parallel()
	d := start(t)
	operator, agent := d.dial(t), d.dial(t)
	pid := agent.attach("worker", `,"capabilities":{"allowed_syscalls":["Http.Fetch","Capability.Check"],"http":{"hosts":["other.example.org","*.example.com"]}}`)
	for _, test := range []struct{ url, why, id string }{
		{"https://api.example.com/", "it may fetch from *.example.com", ""},
		{"https://other.example.org/", "it may fetch from other.example.org", ""},
		{"https://example.org/", "the caller may not fetch from example.org", "http.denied"},
		{"http://api.example.com/", "plain http", "http.denied"},
	} {
		data := fmt.Sprintf(`{"url":%q}`, test.url)
		for c, more := range map[*client]string{agent: "", operator: fmt.Sprintf(`,"pid":%d`, pid)} {
			out := c.explain("Http.Fetch", data, more)
			if last := out.Stages[len(out.Stages)-1]; last.Stage != "handler" || !strings.Contains(last.Why, test.why) || out.Allowed != (test.id == "") {
				t.Errorf("%s: %+v", test.url, out)
			}
		}
	}
	if out := operator.explain("Http.Fetch", `{"url":"http://anywhere.example/"}`, ""); out.Stages[len(out.Stages)-1].Why != "it may fetch from everywhere" {
		t.Errorf("the operator: %+v", out)
	}
}
