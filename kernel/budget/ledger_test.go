package budget_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/budget"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// processes is the process table, with only the parts that the ledger's domain reads.
type processes map[int64]int64 // parents

func (p processes) Process(pid int64) *schema.Descriptor {
	parent, ok := p[pid]
	if !ok {
		return nil
	}
	return &schema.Descriptor{PID: pid, ParentPID: parent, AgentID: "a" + strconv.FormatInt(pid, 10)}
}

// shell makes calls as the kernel does: through the gate, and into the journal in a random order.
type shell struct {
	t       *testing.T
	r       *rand.Rand
	ledger  *budget.Ledger
	parents processes
	next    int64
	seq     uint64
	journal []*kernel.Call  // recorded
	flying  []*kernel.Call  // past the gate, not recorded yet
	open    map[uint64]bool // requests to models
	cut     bool            // the last spawn failed: the account that it opened stays until the next one
}

func newShell(t *testing.T, seed uint64) *shell {
	t.Helper()
	return &shell{
		t: t, r: rand.New(rand.NewPCG(seed, 1)), ledger: budget.New(), parents: processes{}, next: 1, open: map[uint64]bool{},
	}
}

func (s *shell) somebody() int64 {
	if s.next == 1 || s.r.IntN(10) == 0 {
		return kernel.Operator
	}
	return 1 + s.r.Int64N(s.next-1)
}

// admit passes a call through the gate.
func (s *shell) admit(call *kernel.Call) bool {
	call.Time = 1000
	v := s.ledger.Stage(call)
	if v.Fault != nil && !errors.Is(v.Fault, fault.BudgetExhausted) {
		s.t.Fatal(v.Fault)
	}
	if call.Err = v.Fault; v.Fault != nil {
		s.record(call)
	}
	return v.Fault == nil
}

func (s *shell) record(call *kernel.Call) {
	s.seq++
	call.Proof.Seq = s.seq
	s.ledger.Record(call)
	s.journal = append(s.journal, call)
}

// grant is a random budget, or nil.
func (s *shell) grant() *schema.BudgetGrant {
	if s.r.IntN(3) == 0 {
		return nil
	}
	b := &schema.BudgetGrant{}
	for _, n := range []**int64{&b.Calls, &b.Fetches, &b.Tokens} {
		if s.r.IntN(3) > 0 {
			*n = new(s.r.Int64N(40))
		}
	}
	if s.r.IntN(2) == 0 {
		b.USD = new(float64(s.r.IntN(400)) / 100)
	}
	return b
}

func (s *shell) spawn(by int64, b *schema.BudgetGrant) {
	in := &schema.SpawnInput{Capabilities: &schema.SpawnCapability{Budget: b}}
	call := &kernel.Call{Request: kernel.Request{Syscall: schema.SyscallSpawn.Row(), Input: in}, Decision: kernel.Decision{PID: by}}
	if !s.admit(call) {
		return
	}
	step := &kernel.Call{
		Request: kernel.Request{Syscall: schema.CapabilityEndow.Syscall, Input: &schema.EndowInput{
			GrantInput: schema.GrantInput{PID: s.next, Budget: b}, GrantedBy: &by,
		}},
		Decision: kernel.Decision{Holds: call.Holds, Moment: kernel.Moment{Time: 1000}},
	}
	s.record(step)
	if s.cut = s.r.IntN(20) == 0; s.cut { // the spawn then fails: the next child gets the PID
		call.Err = fault.KernelInternal.New("no")
		s.record(call)
		return
	}
	s.parents[s.next] = by
	s.next++
	s.flying = append(s.flying, call)
}

// exit ends a process and its descendants, in any order.
func (s *shell) exit(root int64) {
	if _, lives := s.parents[root]; !lives {
		return
	}
	var pids []int64
	for pid := range s.parents {
		if pid == root || kernel.Descends(s.parents, pid, root) {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	s.r.Shuffle(len(pids), func(i, j int) { pids[i], pids[j] = pids[j], pids[i] })
	for _, pid := range pids {
		delete(s.parents, pid)
	}
	s.record(&kernel.Call{Request: kernel.Request{Syscall: schema.CapabilityStrip.Syscall, Input: &schema.StripInput{PIDs: pids}}})
}

func (s *shell) step() {
	switch n := s.r.IntN(100); {
	case n < 8:
		if by := s.somebody(); by == kernel.Operator || s.parents.Process(by) != nil {
			s.spawn(by, s.grant())
		}
	case n < 12:
		s.exit(s.somebody())
	case n < 16: // an ancestor gives more, or less
		to := s.somebody()
		if s.parents.Process(to) == nil {
			return
		}
		by := s.parents[to]
		if s.r.IntN(2) == 0 {
			by = kernel.Operator
		}
		call := &kernel.Call{Request: kernel.Request{Syscall: schema.CapabilityGrant.Row(), Input: &schema.GrantInput{PID: to, Budget: s.grant()}}, Decision: kernel.Decision{PID: by}}
		if s.admit(call) {
			s.refuse() // calls in flight are paid for by the account that reserved for them
			s.record(call)
		}
	case n < 60:
		pid := s.somebody()
		if s.parents.Process(pid) == nil {
			return
		}
		call := &kernel.Call{Request: kernel.Request{Syscall: schema.MemorySet.Row(), Input: &schema.MemorySetInput{}}, Decision: kernel.Decision{PID: pid}}
		switch s.r.IntN(4) {
		case 0:
			call.Syscall, call.Input = schema.HTTPFetch.Row(), &schema.HTTPFetchInput{}
		case 1:
			call.Syscall = schema.NetRequest.Row()
			call.Input = &schema.NetRequestInput{MaxTokens: s.r.Int64N(20), MaxMicroUSD: s.r.Int64N(500_000)}
		}
		if s.admit(call) {
			s.flying = append(s.flying, call)
		}
	case n < 90: // a call in flight gets its entry
		if len(s.flying) == 0 {
			return
		}
		i := s.r.IntN(len(s.flying))
		call := s.flying[i]
		s.flying = slices.Delete(s.flying, i, i+1)
		switch s.r.IntN(8) {
		case 0:
			call.Err = fault.CapabilityDenied.New("no")
		case 1:
			call.Err = fault.MemoryNotFound.New("no")
		}
		s.record(call)
		if call.Syscall == schema.NetRequest.Row() && call.Intends() {
			s.open[call.Proof.Seq] = true
		}
	case n < 97: // a request ends
		for seq := range s.open {
			s.finish(seq)
			break
		}
	case n < 98:
		s.lose()
	default: // a crash
		s.refuse()
		s.restart()
	}
}

// refuse drops the calls in flight without an entry.
func (s *shell) refuse() {
	for _, call := range s.flying {
		s.ledger.Forget(call)
	}
	s.flying = nil
}

// lose drops entries that cannot be written, and all calls in flight.
func (s *shell) lose() {
	s.refuse()
	s.ledger.Keep()
	want, journal, seq := s.show(), len(s.journal), s.seq
	for pid, b := range want {
		if b.Calls != nil && b.Calls.Reserved != "0" {
			s.t.Fatalf("pid %d: %+v, with nothing in flight", pid, *b.Calls)
		}
	}
	for pid := range s.parents {
		call := &kernel.Call{Request: kernel.Request{Syscall: schema.HTTPFetch.Row(), Input: &schema.HTTPFetchInput{}}, Decision: kernel.Decision{PID: pid}}
		if s.admit(call) {
			s.record(call)
		}
	}
	var all []int64
	for pid := range s.parents {
		all = append(all, pid)
	}
	s.record(&kernel.Call{Request: kernel.Request{Syscall: schema.CapabilityStrip.Syscall, Input: &schema.StripInput{PIDs: all}}})
	s.ledger.Lose()
	s.journal, s.seq = s.journal[:journal], seq
	if diff := cmp.Diff(want, s.show()); diff != "" {
		s.t.Fatalf("after entries that were lost (-before +after):\n%s", diff)
	}
}

// finish ends a request to a model, in one of several ways.
func (s *shell) finish(seq uint64) {
	delete(s.open, seq)
	out := schema.NetRequestOutput{Status: 200, Ended: schema.NetComplete}
	if s.r.IntN(4) == 0 {
		out.Ended = "the answer broke off"
	}
	end := &schema.EffectEnd{Intent: int64(seq), Type: "Net.Request", Ran: true}
	outcome := schema.Outcome{}
	switch s.r.IntN(5) {
	case 0:
		end.Unknown = true
		outcome.Err = fault.KernelInterrupted.New("?")
	case 1:
		outcome.Err = fault.UpstreamFailed.New("?")
	case 2:
		out.Status = 500
	case 3:
		out.Usage = &schema.NetUsage{Input: s.r.Int64N(20), Output: s.r.Int64N(20), MicroUSD: s.r.Int64N(500_000)}
	}
	if outcome.Err == nil {
		var err error
		if outcome.Data, err = schema.Marshal(&out); err != nil {
			s.t.Fatal(err)
		}
	}
	end.Outcome = schema.AppendOutcome(nil, schema.KindCommand, &outcome)
	s.record(&kernel.Call{Request: kernel.Request{Syscall: schema.NetRequest.End.Syscall, Input: end}})
}

// restart rebuilds the ledger from a snapshot and the rest of the journal.
func (s *shell) restart() {
	want := s.show()
	for _, from := range []int{0, s.r.IntN(len(s.journal) + 1), len(s.journal)} {
		at := budget.New()
		for _, call := range s.journal[:from] {
			at.Record(call)
		}
		again := budget.New()
		if err := at.Snapshot()(again.Restore); err != nil {
			s.t.Fatal(err)
		}
		for _, call := range s.journal[from:] {
			again.Record(call)
		}
		s.ledger = again
		if diff := cmp.Diff(want, s.show()); diff != "" {
			s.t.Fatalf("rebuilt, of a snapshot of %d of %d entries (-before +after):\n%s", from, len(s.journal), diff)
		}
	}
}

func (s *shell) show() map[int64]schema.BudgetState {
	d := budget.NewDomain(s.ledger, s.parents)
	call := &kernel.Call{Request: kernel.Request{Syscall: schema.BudgetShow.Row(), Input: &schema.BudgetShowInput{}}}
	result, err := d.Decide(call)
	if err != nil {
		s.t.Fatal(err)
	}
	out, fault := schema.BudgetShow.Output().Decode(result.Data)
	if fault != nil {
		s.t.Fatal(fault)
	}
	all := make(map[int64]schema.BudgetState)
	for _, b := range out.(*schema.BudgetShowOutput).Budgets {
		all[b.PID] = b
	}
	return all
}

// lines are the kinds of a budget's state.
func lines(s schema.BudgetState) map[string]*schema.BudgetLine {
	return map[string]*schema.BudgetLine{"calls": s.Calls, "fetches": s.Fetches, "tokens": s.Tokens, "usd": s.USD}
}

// millionths is an amount as a whole number.
func millionths(t *testing.T, d schema.Decimal) int64 {
	t.Helper()
	if d == "" {
		return 0
	}
	whole, decimals, _ := strings.Cut(string(d), ".")
	n, err := strconv.ParseInt(whole+(decimals + "000000")[:6], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// check compares the books with the rules: a budget is spent, reserved, given to children, or left; the part given to
// children is what the living ones have; calls and fetches are never below zero.
func (s *shell) check() {
	s.t.Helper()
	all := s.show()
	below := make(map[string]int64)
	for pid, b := range all {
		for kind, line := range lines(b) {
			if line == nil {
				continue
			}
			n := func(d schema.Decimal) int64 { return millionths(s.t, d) }
			if sum := n(line.Spent) + n(line.Reserved) + n(line.Below) + n(line.Withheld) + n(line.Left); n(line.Given) != sum {
				s.t.Fatalf("pid %d, %s: the parts of %+v do not sum up to Given", pid, kind, *line)
			}
			if n(line.Left) < 0 && (kind == "calls" || kind == "fetches") {
				s.t.Fatalf("pid %d has overspent its %s: %+v", pid, kind, *line)
			}
			for up := s.parents[pid]; up != kernel.Operator; up = s.parents[up] {
				if lines(all[up])[kind] != nil {
					below[fmt.Sprint(up, kind)] += n(line.Given)
					break
				}
			}
		}
	}
	for pid, b := range all {
		for kind, line := range lines(b) {
			if line == nil {
				continue
			}
			if got, want := millionths(s.t, line.Below), below[fmt.Sprint(pid, kind)]; got != want && !s.cut {
				s.t.Fatalf("pid %d, %s: %d given to children, which have %d", pid, kind, got, want)
			}
		}
	}
}

// TestConserved makes 100,000 random calls, spawns, exits, failures, restarts and ends of effects.
func TestConserved(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		s := newShell(t, seed)
		for i := range 2000 {
			s.step()
			if i%8 == 0 {
				s.check()
			}
		}
	}
}

// TestCostOfRequest: a request to a model costs what its answer reports. If the answer is incomplete or reports
// nothing, it costs at least its reservation; without an answer, nothing.
func TestCostOfRequest(t *testing.T) {
	t.Parallel()
	reports := func(in, out int64) *schema.NetUsage {
		return &schema.NetUsage{Input: in, Output: out, MicroUSD: 1_500_000}
	}
	for _, test := range []struct {
		name        string
		out         *schema.NetRequestOutput
		unknown     bool
		tokens, usd schema.Decimal
	}{
		{"reported", &schema.NetRequestOutput{Status: 200, Usage: reports(10, 5), Ended: schema.NetComplete}, false, "15", "1.5"},
		{"more than reserved", &schema.NetRequestOutput{Status: 200, Usage: reports(500, 50), Ended: schema.NetComplete}, false, "550", "1.5"},
		{"broke off", &schema.NetRequestOutput{Status: 200, Usage: reports(10, 1), Ended: "the answer broke off"}, false, "100", "2"},
		{"broke off late", &schema.NetRequestOutput{Status: 200, Usage: reports(150, 1), Ended: "the answer broke off"}, false, "151", "2"},
		{"reports too little", &schema.NetRequestOutput{Status: 200, Usage: &schema.NetUsage{Output: 7, Estimated: true}, Ended: schema.NetComplete}, false, "100", "2"},
		{"reports too little of much", &schema.NetRequestOutput{Status: 200, Usage: &schema.NetUsage{Output: 107, Estimated: true}, Ended: schema.NetComplete}, false, "107", "2"},
		{"no answer came", &schema.NetRequestOutput{Ended: "the answer broke off"}, false, "100", "2"},
		{"reports nothing", &schema.NetRequestOutput{Status: 200, Ended: schema.NetComplete}, false, "100", "2"},
		{"refused there", &schema.NetRequestOutput{Status: 529, Ended: schema.NetComplete}, false, "0", "0"},
		{"not reached", nil, false, "0", "0"},
		{"unknown", nil, true, "100", "2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t, 1)
			s.spawn(kernel.Operator, &schema.BudgetGrant{Tokens: new(int64(1000)), USD: new(10.0)})
			call := &kernel.Call{Request: kernel.Request{Syscall: schema.NetRequest.Row(), Input: &schema.NetRequestInput{MaxTokens: 100, MaxMicroUSD: 2_000_000}}, Decision: kernel.Decision{PID: 1}}
			if !s.admit(call) {
				t.Fatal(call.Err)
			}
			s.record(call)
			if b := s.show()[1]; b.Tokens.Reserved != "100" || b.USD.Reserved != "2" {
				t.Errorf("in flight: %+v, %+v", b.Tokens, b.USD)
			}
			end := &schema.EffectEnd{Intent: int64(call.Proof.Seq), Type: "Net.Request", Ran: true, Unknown: test.unknown}
			outcome := schema.Outcome{Err: fault.UpstreamFailed.New("?")}
			if test.out != nil {
				data, err := schema.Marshal(test.out)
				if err != nil {
					t.Fatal(err)
				}
				outcome = schema.Outcome{Data: data}
			}
			end.Outcome = schema.AppendOutcome(nil, schema.KindCommand, &outcome)
			s.record(&kernel.Call{Request: kernel.Request{Syscall: schema.NetRequest.End.Syscall, Input: end}})
			b := s.show()[1]
			if b.Tokens.Spent != test.tokens || b.USD.Spent != test.usd || b.Tokens.Reserved != "0" || b.USD.Reserved != "0" {
				t.Errorf("cost %+v, %+v; want %s, %s", b.Tokens, b.USD, test.tokens, test.usd)
			}
		})
	}
}
