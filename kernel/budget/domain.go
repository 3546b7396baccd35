package budget

import (
	"strconv"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Domain shows the ledger. It has no state of its own.
type Domain struct {
	kernel.Stateless
	kernel.Handlers
	ledger    *Ledger
	processes kernel.Processes
}

var _ kernel.Domain = (*Domain)(nil)

// NewDomain returns the domain that shows a ledger.
func NewDomain(l *Ledger, processes kernel.Processes) *Domain {
	d := &Domain{ledger: l, processes: processes}
	d.Handlers = kernel.Bind(schema.Budget, kernel.Query(schema.BudgetShow, d.show))
	return d
}

// maxShown bounds an answer.
const maxShown = 1000

func (d *Domain) show(call *kernel.Call, in *schema.BudgetShowInput) (schema.BudgetShowOutput, error) {
	out := schema.BudgetShowOutput{Budgets: []schema.BudgetState{}}
	top := call.PID
	if in.TargetPID != nil {
		top = *in.TargetPID
		switch {
		case kernel.Visible(d.processes, call, top) == nil:
			return out, kernel.NoProcess(top)
		case call.PID != kernel.Operator && top != call.PID && !kernel.Descends(d.processes, top, call.PID):
			return out, fault.CapabilityNotYours.New("pid %d may not see the budget of pid %d", call.PID, top).
				WithFix("a process sees its own and those of its descendants, the operator any").With("pid", strconv.FormatInt(top, 10))
		}
	}
	l := d.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	l.books.accounts.Scan(func(pid int64, a *account) bool {
		p := d.processes.Process(pid)
		below := pid == top || top == kernel.Operator || kernel.Descends(d.processes, pid, top)
		if p != nil && !a.Ended && below && (a.Limited != [kinds]bool{} || a.Deadline > 0) {
			out.Budgets = append(out.Budgets, l.state(a, p.AgentID))
		}
		return len(out.Budgets) < maxShown
	})
	return out, nil
}

func (l *Ledger) state(a *account, name string) schema.BudgetState {
	line := func(k kind) *schema.BudgetLine {
		if !a.Limited[k] {
			return nil
		}
		text := func(n int64) schema.Decimal { return schema.Decimal(k.text(n)) }
		held := l.holds[a.PID][k]
		shown := &schema.BudgetLine{
			Given: text(a.Given[k]), Spent: text(a.Spent[k]), Reserved: text(a.Reserved[k] + held), Below: text(a.Below[k]), Left: text(a.left(k) - held),
		}
		if n := a.withheld(k); n > 0 {
			shown.Withheld = text(n)
		}
		return shown
	}
	s := schema.BudgetState{
		PID: a.PID, AgentID: name, ParentPID: a.Parent, Calls: line(calls), Fetches: line(fetches), Tokens: line(tokens), USD: line(dollars),
	}
	if end := l.earliestDeadline(a.PID); end > 0 {
		s.Deadline = &end
	}
	return s
}
