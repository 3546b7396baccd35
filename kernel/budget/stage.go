package budget

import (
	"strconv"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema/fault"
)

// held is what the gate keeps for a call until its entry is recorded.
type held struct {
	payers amounts // accounts, by kind
	own    amounts // for the call
	below  amounts // for a child
}

// Stage is the gate's: it keeps for a call what that needs, once, or refuses it where there is not enough left. The operator acting as
// itself needs nothing, nor does an agent that has no budget above it.
func (l *Ledger) Stage(call *kernel.Call) kernel.Verdict {
	if !l.inUse.Load() || call.PID == kernel.Operator || call.Holds != nil {
		return kernel.Verdict{}
	}
	cost := costOf(call)
	if cost == cost0 {
		return kernel.Verdict{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.late(call); f != nil {
		return kernel.Deny(f)
	}
	h := new(held)
	for k := range kinds {
		need := cost.amounts[k] + cost.below[k]
		asks := cost.asks && (k == tokens || k == dollars)
		if need == 0 && !asks {
			continue
		}
		p := l.payer(call.PID, k)
		if p == nil {
			continue
		}
		left := p.left(k) - l.holds[p.PID][k]
		if need > left || asks && left <= 0 {
			return kernel.Deny(exhausted(call, p, k, need, left))
		}
		h.payers[k], h.own[k], h.below[k] = p.PID, cost.amounts[k], cost.below[k]
	}
	if h.payers == (amounts{}) {
		return kernel.Verdict{}
	}
	for k, pid := range h.payers {
		l.hold(pid, kind(k), h.own[k]+h.below[k])
	}
	call.Holds = h
	return kernel.Verdict{}
}

var cost0 cost

// hold adds to what calls under way hold of an account.
func (l *Ledger) hold(pid int64, k kind, n int64) {
	if n == 0 {
		return
	}
	h := l.holds[pid]
	h[k] += n
	if l.holds[pid] = h; h == (amounts{}) {
		delete(l.holds, pid)
	}
}

// release gives back what is held for a call: for a child alone, where that has its account now.
func (l *Ledger) release(call *kernel.Call, below bool) {
	h, ok := call.Holds.(*held)
	if !ok {
		return
	}
	for k, pid := range h.payers {
		l.hold(pid, kind(k), -h.below[k])
		if !below {
			l.hold(pid, kind(k), -h.own[k])
		}
	}
	if h.below = (amounts{}); !below {
		call.Holds = nil
	}
}

// Metered reports whether tokens and dollars are bounded for a process.
func (l *Ledger) Metered(pid int64) (usesTokens, usesDollars bool) {
	if !l.inUse.Load() {
		return false, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.payer(pid, tokens) != nil, l.payer(pid, dollars) != nil
}

// late refuses a call of a process whose time has ended.
func (l *Ledger) late(call *kernel.Call) *fault.Fault {
	end := l.deadline(call.PID)
	if end == 0 || call.Time < end {
		return nil
	}
	return fault.BudgetExhausted.New("pid %d may make no more calls: its wall_seconds are over", call.PID).
		WithFix("start it again with more of them").With("kind", "wall_seconds").With("pid", strconv.FormatInt(call.PID, 10))
}

// deadline is the earliest of a process and its ancestors, 0 where there is none.
func (l *Ledger) deadline(pid int64) (end int64) {
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
	return f.WithFix(`"pwos budget %d" shows what it was used for; start it again with more`, p.PID).
		With("kind", names[k]).With("left", k.text(left)).With("pid", strconv.FormatInt(p.PID, 10))
}
