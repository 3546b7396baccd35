package kernel_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// noTokens has no tokens.
type noTokens struct{}

func (noTokens) Token(int64) *kernel.Token           { return nil }
func (noTokens) Process(int64) *schema.Descriptor    { return nil }
func (noTokens) readOrigin(o string) (string, error) { return o, nil }

// TestRoles: a viewer's key may make every query except three, and subscribe; an approver's may also decide approvals;
// neither moves the clock.
func TestRoles(t *testing.T) {
	t.Parallel()
	reached := int64(0)
	a := &kernel.Authority{
		Tokens: noTokens{}, Processes: noTokens{}, ReadOrigin: noTokens{}.readOrigin,
		Now: func() int64 { return 3 }, Reach: func(tick int64) { reached = tick },
	}
	told := []string{"Approval.Subscribe", "Audit.Subscribe", "Job.Subscribe"}
	never := []string{"Crypto.Derive", "Crypto.Open", "Step.Diff", "Process.Explain"}
	for _, row := range schema.Syscalls() {
		if row.Internal {
			continue
		}
		for _, role := range []string{"", kernel.Viewer, kernel.Approver} {
			call := &kernel.Call{Request: kernel.Request{Syscall: row, Caller: kernel.Caller{Role: role}, Message: schema.Message{Type: row.Type}}}
			want := role == "" || row.Kind == schema.KindQuery && !slices.Contains(never, row.Type) || slices.Contains(told, row.Type) ||
				role == kernel.Approver && row.Type == "Approval.Decide"
			v := a.Authorize(call)
			if v.Allows() != want || !want && !errors.Is(v.Fault, fault.RoleDenied) {
				t.Errorf("%s as %q: %v, want allowed: %v", row.Type, role, v.Fault, want)
			}
		}
	}
	tick := int64(9)
	call := &kernel.Call{Request: kernel.Request{Caller: kernel.Caller{Role: kernel.Viewer}, Input: &schema.BudgetShowInput{Target: schema.Target{Tick: &tick}}}}
	if a.Identify(call); reached != 0 {
		t.Errorf("a viewer moves the clock to %d", reached)
	}
	call.Caller.Role = ""
	if a.Identify(call); reached != 9 {
		t.Errorf("the operator moves the clock to %d", reached)
	}
}
