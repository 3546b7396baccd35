package policy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Entry is a call as an entry of the journal has it.
type Entry struct {
	PID, Tick, Time  int64
	Origin, Conn     string
	Request, Outcome []byte
}

// Change describes how the policy's verdict on a call in the journal differs from the recorded one.
type Change string

// Values of Change.
const (
	WouldDeny  Change = "would deny"
	WouldAsk   Change = "would ask"
	WouldAllow Change = "would now allow"
)

// Past judges the calls of a journal with rules, entry by entry from the first on. It follows the processes and the
// registered syscalls.
type Past struct {
	judge      *Judge
	processes  map[int64]*schema.Descriptor
	registered map[[2]string]*schema.Registration
	doors      map[string]string // names of the doors of connections, since the last start of the kernel

	Withheld int // calls with members that the journal does not keep; rules see only the others
}

// NewPast returns a Past that judges with a Set; nil: no rules.
func NewPast(set *Set, forms Forms) *Past {
	p := &Past{processes: make(map[int64]*schema.Descriptor), registered: make(map[[2]string]*schema.Registration), doors: make(map[string]string)}
	p.judge = &Judge{Set: set, Forms: forms, Processes: p, Registry: p}
	return p
}

// Process implements kernel.Processes.
func (p *Past) Process(pid int64) *schema.Descriptor { return p.processes[pid] }

// Registered implements kernel.Registry.
func (p *Past) Registered(origin, name string) *schema.Registration {
	return p.registered[[2]string{origin, name}]
}

// RegisteredIn implements kernel.Registry.
func (p *Past) RegisteredIn(string) []string { return nil }

// Judge handles the next entry. If judge is false it only records it. It returns how the verdict changes ("": it does not),
// the call's type, and the rule that decides now or decided then.
func (p *Past) Judge(e *Entry, judge bool) (c Change, typ, rule string, err error) {
	if e.PID == kernel.Operator {
		switch _, typ := schema.Peek(e.Request); typ {
		case schema.SyscallSpawn.Type, schema.ProcessAttach.Type, schema.SyscallRegister.Type, schema.SyscallUnregister.Type:
		case schema.KernelBooted.Type:
			clear(p.doors) // each start numbers connections from zero
			return "", "", "", nil
		default:
			return "", "", "", nil
		}
	}
	msg, failed := schema.Decode(e.Request, schema.OsMessage)
	if failed != nil {
		return "", "", "", failed
	}
	row, ok := schema.Lookup(msg.Type)
	if !ok || !judged(row) {
		return "", "", "", nil
	}
	outcome, failed := schema.DecodeOutcome(e.Outcome)
	if failed != nil {
		return "", "", "", failed
	}
	in, failed := row.Input().Decode(msg.Data)
	if failed != nil { // the entry of a refused call may be incomplete
		p.Withheld++
		return "", "", "", nil
	}
	if e.PID != kernel.Operator && judge && reached(outcome.Err) {
		call := p.call(e, msg, row, in)
		if row.Input().Withholds(in, outcome.Err != nil) {
			p.Withheld++
		}
		c, rule = p.change(call, &outcome)
	}
	if outcome.Err == nil {
		p.note(e, in, outcome.Data)
	}
	return c, msg.Called(), rule, nil
}

// call rebuilds the call of an entry.
func (p *Past) call(e *Entry, msg schema.Message, row *schema.Syscall, in any) *kernel.Call {
	call := kernel.NewCall(kernel.Request{
		Caller:  kernel.Caller{PID: e.PID, Conn: e.Conn, Via: cmp.Or(p.doors[e.Conn], viaOf(e.Conn))},
		Message: msg, Syscall: row, Input: in,
	}, kernel.Moment{Tick: e.Tick, Time: e.Time})
	call.PID, call.Origin = e.PID, e.Origin
	return &call
}

// before lists the faults of the gate's stages before the policy.
var before = []fault.ID{
	fault.CapabilityNotYours, fault.CapabilityDenied, fault.CapabilityExpired, fault.ProcessEnded, fault.ClockAhead,
}

// reached reports whether a call with this outcome passed the stages before the policy.
func reached(err *fault.Fault) bool { return err == nil || !slices.Contains(before, err.ID) }

// asked reports whether a rule asked about a call with this outcome, which was then not executed.
func asked(err *fault.Fault) bool {
	return err != nil && (err.ID == fault.PolicyAsks || err.ID.Domain() == fault.ApprovalPending.Domain())
}

// exhaustedOf returns the kind of budget that a call with this outcome exceeded.
func exhaustedOf(then *schema.Outcome) string {
	switch {
	case then.Let != nil:
		return then.Let.Exhausted
	case then.Err == nil:
		return ""
	case then.Err.ID == fault.BudgetExhausted:
		return then.Err.Detail("kind")
	}
	return then.Err.Detail("exhausted")
}

// viaOf returns the door of a connection with that name, if its process has not named another.
func viaOf(conn string) string {
	for prefix, via := range map[string]string{"a-": "channel", "net-": "channel", "inline": "inline", "job": "job", "k-": "cluster"} {
		if strings.HasPrefix(conn, prefix) {
			return via
		}
	}
	return "socket"
}

// change compares the verdict on a call with the recorded one.
func (p *Past) change(call *kernel.Call, then *schema.Outcome) (Change, string) {
	var now Decision
	call.Exhausted = exhaustedOf(then)
	if p.judge.Set != nil {
		now = p.judge.Decide(call)
	}
	if now.rank() == 1 {
		_, now.Failed = p.judge.Normal(call) // a call without a normal form cannot be asked about, and is refused
	}
	switch {
	case call.Exhausted == "" || now.more(call):
	case then.Let != nil: // it was approved, and no rule asks now, so the budget refuses it
		return WouldDeny, then.Let.Rule
	default:
		return "", ""
	}
	wasAsked := asked(then.Err) || then.Let != nil
	denied := !wasAsked && then.Err != nil && then.Err.ID.Domain() == fault.PolicyDenied.Domain()
	switch {
	case now.Rule == nil && then.Let != nil:
		return WouldAllow, then.Let.Rule
	case now.Rule == nil && (wasAsked || denied):
		return WouldAllow, then.Err.Detail("rule")
	case now.Rule == nil:
		return "", ""
	case now.rank() == 1 && !wasAsked:
		return WouldAsk, now.Rule.ID
	case now.rank() > 1 && !denied:
		return WouldDeny, now.Rule.ID
	}
	return "", ""
}

// note records the changes by a successful call that rules can see.
func (p *Past) note(e *Entry, in any, data []byte) {
	switch in := in.(type) {
	case *schema.SpawnInput:
		out, err := schema.SyscallSpawn.Decode(data)
		if err != nil || in.Abroad() {
			return
		}
		child := &schema.Descriptor{PID: out.ChildPID, AgentID: out.ChildAgentID, ParentPID: e.PID, Origin: e.Origin}
		if in.Intent != nil {
			child.Intent = *in.Intent
		}
		p.processes[child.PID] = child
	case *schema.AttachInput:
		if in.Via != nil {
			p.doors[e.Conn] = *in.Via
		}
		if out, err := schema.ProcessAttach.Decode(data); err == nil && p.processes[out.PID] == nil {
			p.processes[out.PID] = &schema.Descriptor{PID: out.PID, AgentID: out.AgentID, Origin: e.Origin}
		}
	case *schema.RegisterInput:
		p.registered[[2]string{e.Origin, in.Name}] = &schema.Registration{Name: in.Name, Path: in.Path}
	case *schema.UnregisterInput:
		delete(p.registered, [2]string{e.Origin, in.Name})
	}
}

// Finding is a kind of change and its count.
type Finding struct {
	Change     Change
	Rule, Type string
	Count      int64
	First      uint64 // entry of the first
}

// Findings counts changes. The zero value has none.
type Findings struct {
	list []*Finding
	by   map[Finding]*Finding
}

// Add counts a change of the call of an entry.
func (f *Findings) Add(seq uint64, c Change, typ, rule string) {
	key := Finding{Change: c, Rule: rule, Type: typ}
	if f.by == nil {
		f.by = make(map[Finding]*Finding)
	}
	one := f.by[key]
	if one == nil {
		one = &Finding{Change: c, Rule: rule, Type: typ, First: seq}
		f.by[key] = one
		f.list = append(f.list, one)
	}
	one.Count++
}

// List returns the findings, denials first, then by the first entry.
func (f *Findings) List() []*Finding {
	order := []Change{WouldDeny, WouldAsk, WouldAllow}
	list := slices.Clone(f.list)
	slices.SortStableFunc(list, func(a, b *Finding) int { return slices.Index(order, a.Change) - slices.Index(order, b.Change) })
	return list
}
