package policy_test

import (
	"strings"
	"testing"

	"github.com/promptware-os/pwos/policy"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestExcept: the change allows that call and no other.
func TestExcept(t *testing.T) {
	t.Parallel()
	files := []policy.File{{Name: "a.cedar", Text: []byte(`// first; of two
@id("no-prod") forbid(principal, action in [Syscall::"Memory.Set", Syscall::"Memory.Get"], resource)
when { context.args.key like "prod/*" }; // here; and there
/// another;
@id("no-b") forbid(principal in Agent::"lead", action == Syscall::"Memory.Set", resource) when { context.args.key like "*;b" };
// the end;`)}}
	set := compile(t, string(files[0].Text))
	denied := entry(8, "Memory.Set", `{"key":"/prod/;b","value":"[redacted]"}`, schema.Outcome{Err: fault.PolicyDenied.New("no")})
	changed, rules, err := begun(t, set, policy.Forms{}).Except(files, denied)
	if err != nil || len(rules) != 2 {
		t.Fatalf("%v: %v", rules, err)
	}
	text := string(changed[0].Text)
	for _, comment := range []string{"// first; of two", "// here; and there", "// another;", "// the end;"} {
		if !strings.Contains(text, comment) {
			t.Errorf("the change has removed %q:\n%s", comment, text)
		}
	}
	j := judge(compile(t, text))
	for _, one := range []struct {
		pid       int64
		typ, data string
		allowed   bool
	}{
		{8, "Memory.Set", `{"key":"prod/;b","value":2}`, true},
		{7, "Memory.Set", `{"key":"prod/;b","value":2}`, false},
		{8, "Memory.Set", `{"key":"prod/b","value":2}`, false},
		{8, "Memory.Set", `{"key":"a;b","value":2}`, false},
		{8, "Memory.Get", `{"key":"prod/;b"}`, false},
	} {
		if d := j.Decide(call(t, one.pid, one.typ, one.data)); (d.Rule == nil) != one.allowed {
			t.Errorf("pid %d, %s %s: %+v under\n%s", one.pid, one.typ, one.data, d.Rule, text)
		}
	}
	if _, rules, err := begun(t, set, policy.Forms{}).Except(changed, denied); err != nil || len(rules) != 0 {
		t.Errorf("again: %v, %v", rules, err)
	}
	if _, _, err := begun(t, set, policy.Forms{}).Except(files, entry(0, "Memory.Set", `{"key":"prod/a","value":1}`, schema.Outcome{})); err == nil {
		t.Error("an exception for a call of the operator was accepted")
	}
}
