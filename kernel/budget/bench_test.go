package budget_test

import (
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/budget"
	"github.com/promptware-os/pwos/schema"
)

// BenchmarkCall measures the ledger's part of a call, from the gate to its entry: with no budget anywhere, with none
// for the agent, and with one of an ancestor three levels up.
func BenchmarkCall(b *testing.B) {
	endow := func(l *budget.Ledger, pid, by int64, grant *schema.BudgetGrant) {
		l.Record(&kernel.Call{
			Request: kernel.Request{Syscall: schema.CapabilityEndow.Syscall, Input: &schema.EndowInput{
				GrantInput: schema.GrantInput{PID: pid, Budget: grant}, GrantedBy: &by,
			}},
		})
	}
	given := &schema.BudgetGrant{Calls: new(int64(1 << 50))}
	for name, prepare := range map[string]func(*budget.Ledger){
		"no budget": func(l *budget.Ledger) { endow(l, 4, 0, nil) },
		"another's": func(l *budget.Ledger) {
			endow(l, 1, 0, given)
			endow(l, 4, 0, nil)
		},
		"above": func(l *budget.Ledger) {
			endow(l, 1, 0, given)
			endow(l, 2, 1, nil)
			endow(l, 3, 2, nil)
			endow(l, 4, 3, nil)
		},
	} {
		b.Run(name, func(b *testing.B) {
			l := budget.New()
			prepare(l)
			l.Keep()
			b.ReportAllocs()
			for b.Loop() {
				call := kernel.Call{Request: kernel.Request{Syscall: schema.MemoryGet.Row(), Input: &schema.MemoryGetInput{}}, Decision: kernel.Decision{PID: 4}}
				if v := l.Stage(&call); !v.Allows() {
					b.Fatal(v.Fault)
				}
				l.Record(&call)
			}
		})
	}
}
