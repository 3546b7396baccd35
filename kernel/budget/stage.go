package budget

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// held is what the gate reserves for a call until its entry is recorded.
type held []part

// part is what is reserved in one account.
type part struct {
	pid   int64
	kind  kind
	n     int64
	child bool // for the process that the call spawns
}

// Stage is the Budget stage of the gate: it holds once what a call needs, or refuses the call if there is not enough
// left. The operator acting as itself needs nothing, nor does an agent without a budget above it; but what either
// gives a process must be there.
func (l *Ledger) Stage(call *kernel.Call) kernel.Verdict {
	grant, gives := call.Input.(*schema.GrantInput)
	gives = gives && grant.Budget != nil && !call.Syscall.Internal
	if !l.inUse.Load() || call.PID == kernel.Operator && !gives {
		call.Probe.Why("no budget bounds it")
		return kernel.Verdict{}
	}
	cost := costOf(call)
	if cost == nothing && !gives {
		call.Probe.Why("it costs nothing")
		return kernel.Verdict{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.late(call); f != nil || call.Holds != nil {
		return kernel.Deny(f)
	}
	var kept held
	for k := range kinds {
		asks := cost.asks && (k == tokens || k == dollars)
		if cost.amounts[k] == 0 && cost.below[k] == 0 && !asks {
			continue
		}
		p := l.payer(call.PID, k)
		if p == nil {
			continue
		}
		need, left := cost.amounts[k]+cost.below[k], p.left(k)-l.holds[p.PID][k]
		if need > left || asks && left <= 0 {
			return kernel.Deny(exhausted(call, p, k, need, left))
		}
		kept = append(kept, part{p.PID, k, cost.amounts[k], false}, part{p.PID, k, cost.below[k], true})
	}
	if gives {
		more, f := l.gift(call, grant, kept)
		if f != nil {
			return kernel.Deny(f)
		}
		kept = append(kept, more...)
	}
	if call.Probe != nil {
		call.Probe.Why(l.leaves(kept))
		return kernel.Verdict{}
	}
	for _, part := range kept {
		l.hold(part, 1)
	}
	if kept != nil {
		call.Holds = &kept
	}
	return kernel.Verdict{}
}

var nothing cost

// gift is what a grant takes from the accounts that its process draws on, in addition to the
// reservation of the call itself.
func (l *Ledger) gift(call *kernel.Call, in *schema.GrantInput, own held) (kept held, f *fault.Fault) {
	a, ok := l.books.accounts.Get(in.PID)
	if !ok {
		return nil, nil
	}
	given, limited := limits(in.Budget)
	for k := range kinds {
		if !limited[k] {
			continue
		}
		need := given[k] - a.Given[k]
		if !a.Limited[k] {
			below := l.givenBelow(in.PID, k)
			if below >= tooMuch {
				return nil, kernel.Invalid("budget."+names[k], "cannot be counted: processes below pid %d have too much; end some of them first", in.PID)
			}
			need = given[k] - below
		}
		p := l.payer(a.Parent, k)
		if p == nil {
			continue
		}
		left := p.left(k) - l.holds[p.PID][k]
		for _, part := range own {
			if part.pid == p.PID && part.kind == k {
				left -= part.n
			}
		}
		if need > max(left, 0) {
			return nil, exhausted(call, p, k, need, left)
		}
		if need > 0 {
			kept = append(kept, part{p.PID, k, need, true})
		}
	}
	return kept, nil
}

// leaves describes what is left of the accounts that a call would draw on.
func (l *Ledger) leaves(kept held) string {
	var texts []string
	for _, part := range kept {
		if a, ok := l.books.accounts.Get(part.pid); ok && !part.child {
			texts = append(texts, fmt.Sprintf("%s of %s %s of pid %d are left",
				part.kind.text(a.left(part.kind)-l.holds[part.pid][part.kind]), part.kind.text(a.Given[part.kind]), names[part.kind], part.pid))
		}
	}
	if texts == nil {
		return "no budget bounds it"
	}
	return strings.Join(texts, ", ")
}

// hold adds n times a part to what calls in flight hold of an account.
func (l *Ledger) hold(p part, times int64) {
	if p.n == 0 {
		return
	}
	h := l.holds[p.pid]
	h[p.kind] += times * p.n
	if l.holds[p.pid] = h; h == (amounts{}) {
		delete(l.holds, p.pid)
	}
}

// release releases the reservation of a call; for a child only if it has its account now.
func (l *Ledger) release(call *kernel.Call, child bool) {
	kept, ok := call.Holds.(*held)
	if !ok {
		return
	}
	for i, part := range *kept {
		if part.child || !child {
			l.hold(part, -1)
			(*kept)[i].n = 0
		}
	}
	if !child {
		call.Holds = nil
	}
}

// Metered reports whether a process has a limit on tokens or dollars.
func (l *Ledger) Metered(pid int64) bool {
	if !l.inUse.Load() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.payer(pid, tokens) != nil || l.payer(pid, dollars) != nil
}

// late refuses a call of a process whose deadline has passed.
func (l *Ledger) late(call *kernel.Call) *fault.Fault {
	end := l.earliestDeadline(call.PID)
	if end == 0 || call.Time < end {
		return nil
	}
	return fault.BudgetExhausted.New("pid %d may make no further calls: its wall_seconds have passed", call.PID).
		WithFix("start it again with more of them").With("kind", "wall_seconds").With("pid", strconv.FormatInt(call.PID, 10))
}

// Deadline is the earliest end of the wall_seconds of a process and its ancestors; zero: there is none.
func (l *Ledger) Deadline(pid int64) (end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.earliestDeadline(pid); at > 0 {
		end = time.UnixMilli(at)
	}
	return end
}

// earliestDeadline is the earliest of a process and its ancestors, or 0.
func (l *Ledger) earliestDeadline(pid int64) (end int64) {
	for pid != kernel.Operator {
		a, ok := l.books.accounts.Get(pid)
		if !ok {
			break
		}
		if a.Deadline > 0 && (end == 0 || a.Deadline < end) {
			end = a.Deadline
		}
		pid = a.Parent
	}
	return end
}

func exhausted(call *kernel.Call, p *account, k kind, need, left int64) *fault.Fault {
	whose := ""
	if p.PID != call.PID {
		whose = " of pid " + strconv.FormatInt(p.PID, 10) + ", which it draws on,"
	}
	f := fault.BudgetExhausted.New("pid %d needs %s of the budget's %s, and%s %s of %s are left",
		call.PID, k.text(need), names[k], whose, k.text(left), k.text(p.Given[k]))
	fix := fmt.Sprintf(`"pwos budget %d" shows what it was used for; start it again with more`, p.PID)
	if in, ok := call.Input.(*schema.NetRequestInput); ok && in.MaxTokens > 0 {
		fix += fmt.Sprintf(", or have it ask its model for answers of fewer than %d tokens", in.MaxTokens)
	}
	return f.WithFix("%s", fix).
		With("kind", names[k]).With("left", k.text(left)).With("pid", strconv.FormatInt(p.PID, 10))
}
