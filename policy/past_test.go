package policy_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/policy"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// entry returns a journal's entry of a call.
func entry(pid int64, typ, data string, outcome schema.Outcome) *policy.Entry {
	row, _ := schema.Lookup(typ)
	msg := schema.Message{Kind: row.Kind, Type: typ, Data: []byte(data), Meta: schema.Metadata{Present: true, ID: "m", Timestamp: 1}}
	return &policy.Entry{
		PID: pid, Tick: 3, Origin: "os:///", Conn: "c-1",
		Request: schema.AppendMessage(nil, &msg), Outcome: schema.AppendOutcome(nil, row.Kind, &outcome),
	}
}

// begun returns a Past after the entries that create the processes of world.
func begun(t testing.TB, set *policy.Set, forms policy.Forms) *policy.Past {
	t.Helper()
	p := policy.NewPast(set, forms)
	for _, e := range []*policy.Entry{
		entry(0, "Syscall.Spawn", `{"child_agent_id":"lead","intent":"key:SHA256:abc"}`, schema.Outcome{Data: []byte(`{"child_pid":7,"child_agent_id":"lead"}`)}),
		entry(7, "Syscall.Spawn", `{"child_agent_id":"worker","intent":"key:SHA256:forged"}`, schema.Outcome{Data: []byte(`{"child_pid":8,"child_agent_id":"worker"}`)}),
	} {
		if _, _, _, err := p.Judge(e, false); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// TestPast shows how the verdict on a call of the journal changes, by its outcome then.
func TestPast(t *testing.T) {
	t.Parallel()
	set := compile(t, `@id("no-prod") forbid(principal in Agent::"lead", action == Syscall::"Memory.Set", resource) when {context.args.key like "prod/*"};
@id("ask") @ask("1m") forbid(principal, action == Syscall::"Memory.Delete", resource);
@id("more") @ask("1m") forbid(principal, action == Syscall::"Memory.Get", resource) when {context.exhausted == "calls"};`)
	done := schema.Outcome{Data: []byte(`{"success":true}`)}
	short := func(id fault.ID, as, kind string) schema.Outcome {
		return schema.Outcome{Err: id.New("no").With(as, kind)}
	}
	let := func(kind string) schema.Outcome {
		return schema.Outcome{Data: done.Data, Let: &schema.LetThrough{Approval: "q-1", Rule: "more", Policy: "p", Exhausted: kind}}
	}
	denied := func(id fault.ID) schema.Outcome { return schema.Outcome{Err: id.New("no").With("rule", "old")} }
	for name, test := range map[string]struct {
		pid       int64
		typ, data string
		then      schema.Outcome
		change    policy.Change
		rule      string
	}{
		"denied now":            {8, "Memory.Set", `{"key":"/prod/a","value":1}`, done, policy.WouldDeny, "no-prod"},
		"allowed as then":       {8, "Memory.Set", `{"key":"test/a","value":1}`, done, "", ""},
		"denied as then":        {8, "Memory.Set", `{"key":"prod/a","value":1}`, denied(fault.PolicyDenied), "", ""},
		"failed otherwise":      {8, "Memory.Set", `{"key":"prod/a","value":1}`, denied(fault.MemoryBadKey), policy.WouldDeny, "no-prod"},
		"another refusal":       {8, "Memory.Set", `{"key":"prod/a","value":1}`, denied(fault.HTTPForbidden), policy.WouldDeny, "no-prod"},
		"had no budget":         {8, "Memory.Set", `{"key":"prod/a","value":1}`, short(fault.BudgetExhausted, "kind", "calls"), "", ""},
		"had none, asks now":    {8, "Memory.Get", `{"key":"a"}`, short(fault.BudgetExhausted, "kind", "calls"), policy.WouldAsk, "more"},
		"had none of another":   {8, "Memory.Get", `{"key":"a"}`, short(fault.BudgetExhausted, "kind", "usd"), "", ""},
		"was asked for more":    {8, "Memory.Get", `{"key":"a"}`, short(fault.ApprovalPending, "exhausted", "calls"), "", ""},
		"was let have more":     {8, "Memory.Get", `{"key":"a"}`, let("calls"), "", ""},
		"nobody would be asked": {8, "Memory.Get", `{"key":"a"}`, let("usd"), policy.WouldDeny, "more"},
		"had no token":          {8, "Memory.Set", `{"key":"prod/a","value":1}`, denied(fault.CapabilityDenied), "", ""},
		"allowed now":           {8, "Memory.Set", `{"key":"test/a","value":1}`, denied(fault.PolicyDenied), policy.WouldAllow, "old"},
		"asked now":             {8, "Memory.Delete", `{"key":"a"}`, done, policy.WouldAsk, "ask"},
		"denied then, asks now": {8, "Memory.Delete", `{"key":"a"}`, denied(fault.PolicyDenied), policy.WouldAsk, "ask"},
		"asks as then":          {8, "Memory.Delete", `{"key":"a"}`, denied(fault.PolicyAsks), "", ""},
		"the operator's":        {0, "Memory.Set", `{"key":"prod/a","value":1}`, done, "", ""},
	} {
		c, typ, rule, err := begun(t, set, policy.Forms{}).Judge(entry(test.pid, test.typ, test.data, test.then), true)
		if err != nil || c != test.change || rule != test.rule || c != "" && typ != test.typ {
			t.Errorf("%s: %q by %q of %s, %v; want %q by %q", name, c, rule, typ, err, test.change, test.rule)
		}
	}
	if c, _, rule, err := begun(t, nil, policy.Forms{}).Judge(entry(8, "Memory.Get", `{"key":"a"}`, denied(fault.PolicyDenied)), true); err != nil || c != policy.WouldAllow || rule != "old" {
		t.Errorf("without rules: %q by %q, %v", c, rule, err)
	}
}

// TestPastIsLive: the verdict on a call of the journal is that on a live call, for random rules and calls.
func TestPastIsLive(t *testing.T) {
	t.Parallel()
	chance := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[chance.IntN(len(of))] }
	for i := range 200 {
		var rules strings.Builder
		for n := range 1 + chance.IntN(4) {
			fmt.Fprintf(&rules, "@id(\"r%d\") %s forbid(%s, action == Syscall::\"Memory.Set\", resource) when {%s};\n", n,
				pick("", `@ask("1m")`), pick("principal", `principal == Agent::"lead"`, `principal in Agent::"lead"`),
				pick(`context.args.key like "a*"`, `context.args.key == "b/1"`, `context.args.value == "1"`, `context.via == "job"`, "principal has key", "context.tick > 2"))
		}
		live := judge(compile(t, rules.String()))
		past := begun(t, live.Set, live.Forms)
		for range 50 {
			pid := 7 + chance.Int64N(2)
			data := fmt.Sprintf(`{"key":%q,"value":%s}`, pick("a", "/a/1", "b/1", "/b/1", "c"), pick("1", "1.0", `"1"`, "{}"))
			c := call(t, pid, "Memory.Set", data)
			c.Caller = kernel.Caller{PID: pid, Conn: pick("c-1", "job-1-1")}
			if strings.HasPrefix(c.Caller.Conn, "job") {
				c.Caller.Via = "job"
			}
			e := entry(pid, "Memory.Set", data, schema.Outcome{Data: []byte(`{"success":true}`)})
			e.Conn = c.Caller.Conn
			now := live.Decide(c)
			var want policy.Change
			rule := ""
			if now.Rule != nil {
				want, rule = policy.WouldDeny, now.Rule.ID
				if now.Rule.Ask > 0 {
					want = policy.WouldAsk
				}
			}
			if got, _, by, err := past.Judge(e, true); err != nil || got != want || by != rule {
				t.Fatalf("%d: pid %d, %s under\n%s%q by %q (%v), live %q by %q", i, pid, data, rules.String(), got, by, err, want, rule)
			}
		}
	}
}

// TestPastVia: the door of a call is the one that its connection has named since the last start of the kernel.
func TestPastVia(t *testing.T) {
	t.Parallel()
	past := begun(t, compile(t, `@id("mcp") forbid(principal, action == Syscall::"Memory.Get", resource) when {context.via == "mcp"};`), policy.Forms{})
	look := func(conn string) policy.Change {
		t.Helper()
		e := entry(8, "Memory.Get", `{"key":"k"}`, schema.Outcome{})
		e.Conn = conn
		c, _, _, err := past.Judge(e, true)
		testkit.Must(t, err)
		return c
	}
	for _, one := range []struct {
		entry *policy.Entry
		want  policy.Change
	}{
		{entry(0, "Process.Attach", `{"agent_id":"x","via":"mcp"}`, schema.Outcome{Err: fault.ProcessTaken.New("no")}), ""},
		{entry(0, "Process.Attach", `{"agent_id":"worker","via":"mcp"}`, schema.Outcome{Data: []byte(`{"pid":8,"agent_id":"worker","created":false}`)}), policy.WouldDeny},
		{entry(0, "Kernel.Booted", `{}`, schema.Outcome{Data: []byte(`{}`)}), ""},
	} {
		if _, _, _, err := past.Judge(one.entry, false); err != nil {
			t.Fatal(err)
		}
		if got := look("c-1"); got != one.want {
			t.Errorf("after %s: %q, want %q", one.entry.Request, got, one.want)
		}
		if got := look("c-2"); got != "" {
			t.Errorf("another connection: %q", got)
		}
	}
}

// TestPastUnaskable: a call that cannot be asked about is refused, as a live one is.
func TestPastUnaskable(t *testing.T) {
	t.Parallel()
	past := begun(t, compile(t, `@id("ask") @ask("1m") forbid(principal, action == Syscall::"Memory.Set", resource);`), policy.Forms{})
	for value, want := range map[string]policy.Change{"0.5": policy.WouldAsk, "0.12345678901234567890123": policy.WouldDeny} {
		e := entry(8, "Memory.Set", `{"key":"k","value":`+value+`}`, schema.Outcome{Data: []byte(`{"success":true}`)})
		if got, _, rule, err := past.Judge(e, true); err != nil || got != want || rule != "ask" {
			t.Errorf("%s: %q by %q, %v", value, got, rule, err)
		}
	}
}

func BenchmarkPast(b *testing.B) {
	past := begun(b, compile(b, `forbid(principal, action == Syscall::"Memory.Set", resource) when {context.args.key like "prod/*"};`), policy.Forms{})
	e := entry(8, "Memory.Set", `{"key":"notes/1","value":{"a":1}}`, schema.Outcome{Data: []byte(`{"success":true}`)})
	for b.Loop() {
		if _, _, _, err := past.Judge(e, true); err != nil {
			b.Fatal(err)
		}
	}
}
