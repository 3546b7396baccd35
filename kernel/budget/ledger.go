package budget

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tidwall/btree"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Ledger holds the accounts of all processes, with a budget or without. One goroutine records the journal's entries
// in order; the gate asks it before each call. It is safe for concurrent use.
type Ledger struct {
	inUse atomic.Bool // a budget was ever given

	mu    sync.Mutex
	books books
	kept  books             // the books at the last Keep
	fresh bool              // books have changed since
	timed bool              // wall_seconds were granted since
	holds map[int64]amounts // by account, for calls that have no entry yet
}

// books are the fold over the journal's entries.
type books struct {
	accounts *btree.Map[int64, *account] // by PID
	requests *btree.Map[uint64, request] // in flight to models; by seq of their entry
	ended    []int64                     // accounts of ended processes, oldest first
}

// request is what a request to a model reserves until it is answered.
type request struct {
	Seq    uint64
	Payers amounts // accounts, by kind; 0 for no account
	Held   amounts
}

// maxEnded bounds the accounts of ended processes that are kept for what those have begun.
const maxEnded = 4096

// New returns the ledger of an empty journal.
func New() *Ledger {
	l := &Ledger{}
	l.Reset()
	return l
}

// Reset forgets everything.
func (l *Ledger) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.books = books{accounts: new(btree.Map[int64, *account]), requests: new(btree.Map[uint64, request])}
	l.holds = make(map[int64]amounts)
	l.saveBooks()
	l.inUse.Store(false)
}

// Keep marks everything recorded so far as written, for Lose to return to. It reports whether a
// deadline has changed since the last Keep.
func (l *Ledger) Keep() (timed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	timed = l.timed
	if l.fresh {
		l.saveBooks()
	}
	return timed
}

func (l *Ledger) saveBooks() {
	b := l.books
	l.timed = false
	l.kept, l.fresh = books{b.accounts.Copy(), b.requests.Copy(), slices.Clone(b.ended)}, false
}

// Lose rolls back what was recorded since Keep: its entries could not be written.
func (l *Ledger) Lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fresh {
		b := l.kept
		l.books, l.fresh, l.timed = books{b.accounts.Copy(), b.requests.Copy(), slices.Clone(b.ended)}, false, false
		l.count()
	}
}

// count updates inUse.
func (l *Ledger) count() {
	l.inUse.Store(false)
	l.books.accounts.Scan(func(_ int64, a *account) bool {
		bounded := a.Limited != [kinds]bool{} || a.Deadline > 0
		if bounded {
			l.inUse.Store(true)
		}
		return !bounded
	})
}

// Record records a call, or a step of one, whose entry was appended to the journal.
func (l *Ledger) Record(call *kernel.Call) {
	row := call.Syscall
	if row == nil || row.Domain != schema.Capability && !l.inUse.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	in, endows := call.Input.(*schema.EndowInput)
	switch {
	case endows && row == schema.CapabilityEndow.Syscall:
		l.release(call, true)
		if call.Err == nil {
			l.open(in, call.Time)
		}
	case row == schema.CapabilityStrip.Syscall:
		if in, ok := call.Input.(*schema.StripInput); ok && call.Err == nil {
			for _, pid := range in.PIDs {
				l.end(pid)
			}
		}
	case row == schema.NetRequest.End.Syscall:
		if end, ok := call.Input.(*schema.EffectEnd); ok {
			l.settle(end)
		}
	case row.Internal && row.Outcome == "": // a step of another call, which pays
	default:
		l.release(call, false)
		l.spend(call)
		if in, ok := call.Input.(*schema.GrantInput); ok && call.Err == nil && !call.Repeated {
			l.give(in.PID, in.Budget, call.Time)
		}
	}
}

// Forget releases the reservation of a call that gets no entry.
func (l *Ledger) Forget(call *kernel.Call) {
	if call.Holds == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.release(call, false)
}

// Same implements kernel.Budgets. It ignores the deadline, which passes with time anyway.
func (l *Ledger) Same(pid int64, budget *schema.BudgetGrant) bool {
	given, limited := limits(budget)
	l.mu.Lock()
	defer l.mu.Unlock()
	a, ok := l.books.accounts.Get(pid)
	if !ok {
		return false
	}
	return a.Asked == given && a.Limited == limited
}

// change changes the account of a PID.
func (l *Ledger) change(pid int64, change func(*account)) {
	if a, ok := l.books.accounts.Get(pid); ok {
		next := *a
		change(&next)
		l.books.accounts.Set(pid, &next)
		l.fresh = true
	}
}

// payer is the account that a process draws on, or nil: its own, or that of its nearest ancestor
// that has some of the kind.
func (l *Ledger) payer(pid int64, k kind) *account {
	for pid != kernel.Operator {
		a, ok := l.books.accounts.Get(pid)
		if !ok {
			return nil
		}
		if a.Limited[k] && !a.Ended {
			return a
		}
		pid = a.Parent
	}
	return nil
}

// open opens the account of a new process. An account of the same PID is of a spawn that a crash interrupted.
func (l *Ledger) open(in *schema.EndowInput, now int64) {
	l.end(in.PID)
	l.books.ended = slices.DeleteFunc(l.books.ended, func(pid int64) bool { return pid == in.PID })
	by := kernel.Operator
	if in.GrantedBy != nil {
		by = *in.GrantedBy
	}
	l.books.accounts.Set(in.PID, &account{PID: in.PID, Parent: by})
	l.fresh = true
	l.give(in.PID, in.Budget, now)
}

// give sets the total budget of a process, including what it has spent. A smaller budget than that
// leaves zero.
func (l *Ledger) give(pid int64, budget *schema.BudgetGrant, now int64) {
	a, ok := l.books.accounts.Get(pid)
	if !ok || budget == nil || a.Ended {
		return
	}
	l.inUse.Store(true)
	given, limited := limits(budget)
	for k := range kinds {
		if !limited[k] {
			continue
		}
		below := a.Below[k]
		if !a.Limited[k] { // its descendants' budgets came out of the account that it drew on
			below = l.givenBelow(pid, k)
		}
		asked := given[k]
		given[k] = max(asked, a.Spent[k]+a.Reserved[k]+below)
		if p := l.payer(a.Parent, k); p != nil {
			taken := given[k] - a.Given[k]
			if !a.Limited[k] {
				taken -= below
			}
			l.change(p.PID, func(p *account) { p.Below[k] += taken })
		}
		l.change(pid, func(a *account) { a.Limited[k], a.Given[k], a.Asked[k], a.Below[k] = true, given[k], asked, below })
	}
	if budget.WallSeconds != nil {
		l.change(pid, func(a *account) { a.Deadline = now + *budget.WallSeconds*1000 })
		l.timed = true
	}
}

// tooMuch exceeds any budget, and can be added to without overflow.
const tooMuch = 1 << 60

// givenBelow sums what the descendants of a process have that draw on it, or on the same account as it does: at most
// tooMuch.
func (l *Ledger) givenBelow(pid int64, k kind) (sum int64) {
	l.books.accounts.Scan(func(_ int64, d *account) bool {
		if d.PID == pid || !d.Limited[k] || d.Ended {
			return true
		}
		for up := d.Parent; up != kernel.Operator; {
			a, ok := l.books.accounts.Get(up)
			if up == pid {
				sum = min(sum+d.Given[k], tooMuch)
			}
			if !ok || up == pid || a.Limited[k] && !a.Ended {
				break
			}
			up = a.Parent
		}
		return true
	})
	return sum
}

// end returns what a process has left to its parent.
func (l *Ledger) end(pid int64) {
	a, ok := l.books.accounts.Get(pid)
	if !ok || a.Ended {
		return
	}
	l.change(pid, func(a *account) {
		a.Ended = true
		a.Given, a.Asked, a.Spent, a.Reserved, a.Below = amounts{}, amounts{}, amounts{}, amounts{}, amounts{}
	})
	for k := range kinds {
		if !a.Limited[k] {
			continue
		}
		var to int64
		if p := l.payer(a.Parent, k); p != nil {
			to = p.PID
			l.change(to, func(p *account) {
				p.Below[k] += a.Below[k] - a.Given[k]
				p.Spent[k] += a.Spent[k]
				p.Reserved[k] += a.Reserved[k]
			})
		}
		l.repay(pid, to, k)
	}
	l.books.ended = append(l.books.ended, pid)
	for len(l.books.ended) > maxEnded {
		l.books.accounts.Delete(l.books.ended[0])
		l.books.ended = l.books.ended[1:]
	}
}

// repay moves the requests that draw on one account to another.
func (l *Ledger) repay(from, to int64, k kind) {
	for _, seq := range l.books.requests.Keys() {
		if r, _ := l.books.requests.Get(seq); r.Payers[k] == from {
			r.Payers[k] = to
			l.books.requests.Set(seq, r)
		}
	}
}

// spend charges a call.
func (l *Ledger) spend(call *kernel.Call) {
	if call.Repeated || call.Err != nil && refused(call.Err) {
		return
	}
	cost := costOf(call)
	for k := range kinds {
		if k == fetches && !call.Intends() {
			continue
		}
		if cost.amounts[k] == 0 || k == tokens || k == dollars {
			continue
		}
		if p := l.payer(call.PID, k); p != nil {
			l.change(p.PID, func(p *account) { p.Spent[k] += cost.amounts[k] })
		}
	}
	if in, ok := call.Input.(*schema.NetRequestInput); ok && call.Intends() {
		l.begin(call, in)
	}
}

// begin reserves what a request to a model may cost.
func (l *Ledger) begin(call *kernel.Call, in *schema.NetRequestInput) {
	r := request{Seq: call.Proof.Seq, Held: amounts{tokens: in.MaxTokens, dollars: in.MaxMicroUSD}}
	for _, k := range []kind{tokens, dollars} {
		if p := l.payer(call.PID, k); p != nil {
			r.Payers[k] = p.PID
			l.change(p.PID, func(p *account) { p.Reserved[k] += r.Held[k] })
		}
	}
	if r.Payers != (amounts{}) {
		l.books.requests.Set(r.Seq, r)
		l.fresh = true
	}
}

// settle charges a finished request to a model. One with unknown usage costs what it reserved, unless it was refused
// there.
func (l *Ledger) settle(end *schema.EffectEnd) {
	r, ok := l.books.requests.Get(uint64(end.Intent))
	if !ok {
		return
	}
	l.books.requests.Delete(r.Seq)
	l.fresh = true
	cost := costOfRequest(end, r.Held)
	for _, k := range []kind{tokens, dollars} {
		l.change(r.Payers[k], func(p *account) {
			p.Reserved[k] -= r.Held[k]
			p.Spent[k] += cost[k]
		})
	}
}
