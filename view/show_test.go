package view_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// rowsOf returns the texts of a table's rows with that name.
func rowsOf(t *view.Table, name string) (texts []string) {
	for _, cells := range t.Rows {
		if cells[0] == name {
			texts = append(texts, strings.Join(cells[1:], " "))
		}
	}
	return texts
}

// TestShowDecision: Audit.Show names the approval and the rule that decided a call, and marks an advisory approval.
func TestShowDecision(t *testing.T) {
	t.Parallel()
	call := func(change func(*view.WholeCall)) *view.WholeCall {
		w := &view.WholeCall{AuditShowOutput: schema.AuditShowOutput{Entry: schema.AuditEntry{Seq: 9, PID: 3, Type: "Memory.Set", Status: schema.StatusOK}, Conn: "c-1"}}
		change(w)
		return w
	}
	asked := &schema.ShownApproval{Approval: "a-1", Rule: "ask-deploy"}
	for _, c := range []struct {
		name, row string
		want      string // "" if there is no such row
		call      *view.WholeCall
	}{
		{"no rule", "rule", "", call(func(*view.WholeCall) {})},
		{"a rule", "rule", "no-net at policy.cedar:4", call(func(w *view.WholeCall) { w.Rule = &schema.ShownRule{Rule: "no-net", At: "policy.cedar:4"} })},
		{"a rule, to an agent", "rule", "no-net", call(func(w *view.WholeCall) { w.Rule = &schema.ShownRule{Rule: "no-net"} })},
		{"a hostile rule", "rule", `no\u202enet`, call(func(w *view.WholeCall) { w.Rule = &schema.ShownRule{Rule: "no\u202enet"} })},
		{"an approval without details", "approval", "a-1, as rule ask-deploy asks", call(func(w *view.WholeCall) { w.Approval = asked })},
		{"an advisory one", "approval", "a-1, as rule ask-deploy asks, advisory: the agent could have answered itself", call(func(w *view.WholeCall) {
			advisory := *asked
			advisory.Advisory = true
			w.Approval = &advisory
		})},
	} {
		for _, table := range []*view.Table{c.call.Table(view.Names{}, func(_ view.Look, text string) string { return text }), c.call.Facts(view.Names{})} {
			got := rowsOf(table, c.row)
			if c.want == "" && got != nil || c.want != "" && !slices.Equal(got, []string{c.want}) {
				t.Errorf("%s: got %q, want %q", c.name, got, c.want)
			}
		}
	}
	decided := call(func(w *view.WholeCall) {
		w.Approval = asked
		w.Asked = &schema.ApprovalState{Why: "looks right", Decided: &schema.ApprovalDecided{Conn: "c-2", Key: "SHA256:abc"}}
	})
	if got := rowsOf(decided.Facts(view.Names{}), "approval"); len(got) != 1 || !strings.Contains(got[0], "answered") || !strings.Contains(got[0], "SHA256:abc") || !strings.Contains(got[0], "looks right") {
		t.Errorf("answered: got %q", got)
	}
}

// TestShowAuthority: the operator, the kernel's own steps, and a chain of grants up to the operator's.
func TestShowAuthority(t *testing.T) {
	t.Parallel()
	names := view.Names{1: "planner", 3: "planner/writer"}
	call := &view.WholeCall{AuditShowOutput: schema.AuditShowOutput{
		Entry: schema.AuditEntry{Seq: 9, PID: 3, Type: "Memory.Set"},
		Authority: []schema.ShownToken{
			{Seq: 5, Type: "Capability.Endow", PID: 3, Token: &schema.Token{PID: 3, TokenGrant: schema.TokenGrant{GrantedBy: 1, AllowedSyscalls: []string{"Ipc.*", "Memory.*"}}}},
			{Seq: 7, Type: "Capability.Revoke", PID: 1, By: 0},
		},
	}}
	got := rowsOf(call.Facts(names), "authority")
	want := []string{"planner granted planner/writer Memory.*, entry 5 Capability.Endow", "planner had no token: operator revoked it, entry 7 Capability.Revoke"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	call.Authority = nil
	for pid, text := range map[int64]string{0: "may make any call", 3: "no token"} {
		call.Entry.PID = pid
		if got := rowsOf(call.Facts(names), "authority"); len(got) != 1 || !strings.Contains(got[0], text) {
			t.Errorf("pid %d: got %q, want %q", pid, got, text)
		}
	}
}
