package kernel_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestGate: the stages run in their order, until one does not allow the call; a call that must not wait is refused.
func TestGate(t *testing.T) {
	t.Parallel()
	all := []string{"bounds", "identity", "token", "tick", "quota", "policy", "approval"}
	refuse := func(*kernel.Call) kernel.Verdict { return kernel.Deny(fault.CapabilityDenied.New("no")) }
	ask := func(*kernel.Call) kernel.Verdict { return kernel.Pend("q-1", time.Minute) }
	over := func(*kernel.Call) kernel.Verdict {
		return kernel.Deny(fault.BudgetExhausted.New("no").With("kind", "calls"))
	}
	asks := func(call *kernel.Call) kernel.Verdict {
		call.Inquiry = &kernel.Inquiry{Exhausted: call.Exhausted}
		return kernel.Verdict{}
	}
	another := func(call *kernel.Call) kernel.Verdict {
		call.Inquiry = new(kernel.Inquiry)
		return kernel.Verdict{}
	}
	tests := []struct {
		name  string
		set   func(g *kernel.Gate)
		call  kernel.Call
		asked []string
		err   error
		pends string
	}{
		{"all allow", func(*kernel.Gate) {}, kernel.Call{}, all, nil, ""},
		{"no stages", func(g *kernel.Gate) { *g = kernel.Gate{} }, kernel.Call{}, nil, nil, ""},
		{"over a bound", func(g *kernel.Gate) { g.Bounds = refuse }, kernel.Call{}, nil, fault.CapabilityDenied, ""},
		{"without a token", func(g *kernel.Gate) { g.Token = refuse }, kernel.Call{}, all[:2], fault.CapabilityDenied, ""},
		{"not approved", func(g *kernel.Gate) { g.Approval = refuse }, kernel.Call{}, all[:6], fault.CapabilityDenied, ""},
		{"asks", func(g *kernel.Gate) { g.Policy = ask }, kernel.Call{}, all[:5], nil, "q-1"},
		{"has asked for long enough", func(g *kernel.Gate) { g.Approval = ask }, kernel.Call{Decision: kernel.Decision{Waited: kernel.Waited{Lapsed: true}}}, all[:6], fault.ApprovalPending, ""},
		{"does not wait", func(g *kernel.Gate) { g.Approval = ask }, kernel.Call{Request: kernel.Request{Syscall: schema.ProgramExec.Row()}}, all[:6], fault.ApprovalPending, ""},
		{"has gone", func(g *kernel.Gate) { g.Approval = ask }, kernel.Call{Decision: kernel.Decision{Waited: kernel.Waited{Final: true}}}, all[:6], fault.ApprovalPending, ""},
		{"over its budget", func(g *kernel.Gate) { g.Budget = over }, kernel.Call{}, all[:6], fault.BudgetExhausted, ""},
		{"over its budget, and a rule asks", func(g *kernel.Gate) { g.Budget, g.Policy = over, asks }, kernel.Call{}, append(all[:5:5], "approval"), nil, ""},
		{"over its budget, and nobody can be asked", func(g *kernel.Gate) { g.Budget, g.Policy, g.Approval = over, asks, nil }, kernel.Call{}, all[:5], fault.PolicyAsks, ""},
		{"over its budget, and another rule asks", func(g *kernel.Gate) { g.Budget, g.Policy = over, another }, kernel.Call{}, all[:5], fault.BudgetExhausted, ""},
		{"has gone, and is allowed", func(*kernel.Gate) {}, kernel.Call{Decision: kernel.Decision{Waited: kernel.Waited{Final: true}}}, all, nil, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var asked []string
			stage := func(name string) kernel.Stage {
				return func(*kernel.Call) kernel.Verdict {
					asked = append(asked, name)
					return kernel.Verdict{}
				}
			}
			g := kernel.Gate{
				Approval: stage("approval"), Policy: stage("policy"), Quota: stage("quota"), Tick: stage("tick"),
				Token: stage("token"), Identity: stage("identity"), Bounds: stage("bounds"),
			}
			test.set(&g)
			v := g.Admit(&test.call)
			if !slices.Equal(asked, test.asked) {
				t.Errorf("asked %v, want %v", asked, test.asked)
			}
			if v.Fault == nil != (test.err == nil) || v.Fault != nil && !errors.Is(v.Fault, test.err) {
				t.Errorf("fault %v, want %v", v.Fault, test.err)
			}
			if id := v.Fault; test.err == fault.ApprovalPending && id.Detail("approval") != "q-1" {
				t.Errorf("details %v", id.Details)
			}
			switch q := v.Pending; {
			case q == nil != (test.pends == ""), q != nil && (q.ID != test.pends || q.Wait != time.Minute):
				t.Errorf("question %v, want %q", q, test.pends)
			}
			if v.Allows() != (test.err == nil && test.pends == "") {
				t.Errorf("allows: %t", v.Allows())
			}
		})
	}
}
