package kernel

import (
	"fmt"
	"strings"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Probe marks a call that is only asked about, with Capability.Check. The stages of the gate judge it as they would judge the call,
// and have no effect: none counts, asks anybody, or moves the clock.
type Probe struct {
	Operator bool // it is the operator that asks: where rules stand is said
	why      string

	at, exception string // of a rule that has somebody asked
}

// Rule notes where a rule stands that has somebody asked, and what is to be added to it for it to let the call alone; the operator is told.
func (p *Probe) Rule(at, exception string) {
	if p != nil && p.Operator {
		p.at, p.exception = at, exception
	}
}

// Why has a stage that allows the call say by what. A nil Probe is that of a call which is made.
func (p *Probe) Why(why string) {
	if p != nil {
		p.why = why
	}
}

// Said is what Why was told last; it is forgotten.
func (p *Probe) Said() string {
	why := p.why
	p.why = ""
	return why
}

// OfOperator reports whether the operator makes the call, or asks about it: where rules stand is said then.
func (c *Call) OfOperator() bool {
	return c.Caller.PID == Operator || c.Probe != nil && c.Probe.Operator
}

// Explain asks the stages about a call that has a Probe, until one does not allow it, and returns what each says, with that stage's
// verdict.
func (g *Gate) Explain(call *Call) (list []schema.CheckStage, v Verdict) {
	for i, stage := range g.stages() {
		if stage == nil {
			continue
		}
		call.Probe.why = ""
		v = g.ask(i, stage, call)
		list = append(list, Explained(stageNames[i], call.Probe.why, v))
		if !v.Allows() {
			break
		}
	}
	q := call.Inquiry
	switch last := &list[len(list)-1]; {
	case q == nil:
	case v.Pending != nil:
		last.Rule, last.Fix, last.At, last.Exception = q.Rule, q.Fix, call.Probe.at, call.Probe.exception
	case v.Allows() && g.Approval == nil:
		v = Deny(call.CannotAsk())
		list = append(list, Explained("approval", "", v))
	}
	return list, v
}

// Explained is what a stage says of a call with its verdict. why is by what it allows the call.
func Explained(stage, why string, v Verdict) schema.CheckStage {
	said := schema.CheckStage{Stage: stage, Verdict: "allows", Why: why}
	switch f := v.Fault; {
	case v.Pending != nil:
		said.Verdict = "asks"
	case f != nil:
		said.Verdict, said.Why, said.Fix = "denies", f.Message, f.Fix
		if said.Fix == "" {
			if e, ok := fault.Lookup(f.ID); ok {
				said.Fix = e.Fix
			}
		}
		said.Rule, said.At, said.Exception = f.Detail("rule"), f.Detail("at"), f.Detail("exception")
	}
	return said
}

// grounds says by what a call that the token stage allows is allowed: for each process on the way up, the pattern and who granted it.
func (a *Authority) grounds(call *Call) string {
	pattern := func(g *schema.TokenGrant) string { return naming(g, call.Syscall) }
	switch in := call.Input.(type) {
	case *schema.InvokeInput:
		name := in.Name
		if schema.UserSpace(name) {
			name = callWord + ":" + name
		}
		pattern = func(g *schema.TokenGrant) string { return including(g.AllowedSyscalls, name) }
	case *schema.RegisterInput:
		if schema.UserSpace(in.Name) && call.PID != Operator {
			return "the agent of an MCP server provides its own tools"
		}
	}
	switch {
	case call.PID == Operator:
		return "the operator may call everything"
	case call.Syscall.Grant == schema.Everyone:
		return "every process may call it"
	}
	var above []string
	call.Token.walk(call.Tick, func(g *schema.TokenGrant) bool { return pattern(g) != "" }, func(t *Token, g *schema.TokenGrant) {
		granter := "the operator"
		if g.GrantedBy != Operator {
			granter = fmt.Sprintf("pid %d", g.GrantedBy)
		}
		above = append(above, fmt.Sprintf("%s has granted pid %d %s", granter, t.PID(), pattern(g)))
	})
	return strings.Join(above, ", and ")
}

// MayAskAbout returns nil where a process may see what another may do and holds: the operator that of all, an agent its own and its
// descendants'.
func MayAskAbout(processes Processes, asking, pid int64) error {
	if asking == Operator || asking == pid || Descends(processes, pid, asking) {
		return nil
	}
	return fault.CapabilityNotYours.New("pid %d may not see what pid %d may do: it is none of its descendants", asking, pid).
		WithFix("ask about yourself, or about a process that descends from you").With("pid", numbered(pid))
}
