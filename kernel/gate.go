package kernel

import (
	"fmt"
	"strings"
	"time"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
)

// Gate decides whether a call may proceed. Every call passes it except the kernel's own steps, and
// so does every question of a subscription: anything that refuses, asks or delays is one of its
// stages. Stages run in this order, and the first that does not allow the call decides. A nil stage
// allows.
type Gate struct {
	Bounds   Stage // the caller is not over a bound; first, since a call over a bound leaves no entry
	Identity Stage // the process, origin and tick of the call
	Pause    Stage // its caller is not paused: else it waits
	Token    Stage // the process may call the syscall
	Tick     Stage // the tick that it names has come
	Quota    Stage
	Budget   Stage
	Policy   Stage
	Approval Stage
}

// Stage judges one aspect of a call. It may fill in fields for the stages behind it, and for the domain.
type Stage func(*Call) Verdict

// Verdict is the result of a stage, or of the gate. The zero Verdict allows the call.
type Verdict struct {
	Fault   *fault.Fault // the call is refused
	Pending *Pending     // the call waits
}

// Pending is a question that must be answered before a call may proceed. The call then passes the gate again.
type Pending struct {
	ID   string
	Wait time.Duration // how long the call waits before it is refused
	Why  *fault.Fault  // the fault that refuses it; nil: it waits for an approval
}

// Inquiry is a question to people about a call.
type Inquiry struct {
	Rule   string        // the rule that asks
	Fix    string        // the rule's advice, or ""
	Policy string        // digest of the files of the policy
	Stands time.Duration // how long the question stays open
	Data   []byte        // of the call, normalized as the handler uses it, in the form of RFC 8785

	Exhausted string // the kind of budget that the call exceeds, which the rule asks about, or ""
}

// Approval lets a call through although a rule asks about it.
type Approval struct {
	ID, Rule, Policy string
	Exhausted        string          // see Inquiry
	Advisory         bool            // see schema.ApprovalState
	Use              *schema.Request // uses the approval up, before the call takes effect; nil: it lasts
	Used             bool            // that is done: the call, and questions of its subscription, pass
}

// Deny is the verdict that refuses a call.
func Deny(why *fault.Fault) Verdict { return Verdict{Fault: why} }

// Pend is the verdict that has a call wait for an answer.
func Pend(id string, wait time.Duration) Verdict {
	return Verdict{Pending: &Pending{ID: id, Wait: wait}}
}

// Allows reports whether the call may proceed.
func (v Verdict) Allows() bool { return v.Fault == nil && v.Pending == nil }

// stageNames are the names of the stages, in order.
var stageNames = [...]string{"bounds", "identity", "pause", "token", "tick", "quota", "budget", "policy", "approval"}

// budgetStage is the index of the Budget stage.
const budgetStage = 6

func (g *Gate) stages() [len(stageNames)]Stage {
	return [...]Stage{g.Bounds, g.Identity, g.Pause, g.Token, g.Tick, g.Quota, g.Budget, g.Policy, g.Approval}
}

// Admit asks the stages. A call that must not wait any longer is refused instead.
func (g *Gate) Admit(call *Call) Verdict {
	for i, stage := range g.stages() {
		if stage == nil {
			continue
		}
		if v := g.ask(i, stage, call); !v.Allows() {
			switch q := v.Pending; {
			case q == nil:
			case q.Why != nil && call.Disconnected: // it has no receiver for its answer
				return Deny(q.Why)
			case q.Why == nil && (call.Final || call.Lapsed || call.Syscall != nil && call.Syscall.Immediate):
				return Deny(call.Asked(fault.ApprovalPending.New("%s waits for the approval %s, and was not done", call.Message.Called(), q.ID).
					WithFix("have it approved, with %s, and make the same call again", quote.Command("pwos", "approve", q.ID)).With("approval", q.ID)))
			}
			return v
		}
	}
	if call.Inquiry != nil && g.Approval == nil {
		return Deny(call.CannotAsk())
	}
	return Verdict{}
}

// ask asks one stage. A call that exceeds a budget proceeds to the policy if a rule asks about that.
func (g *Gate) ask(i int, stage Stage, call *Call) Verdict {
	if i != budgetStage {
		return stage(call)
	}
	call.Exhausted = ""
	v := stage(call)
	if v.Fault == nil || g.Policy == nil {
		return v
	}
	call.Exhausted = v.Fault.Detail("kind")
	if asks := g.Policy(call); asks.Allows() && call.Inquiry != nil && call.Inquiry.Exhausted != "" {
		call.Probe.Why(v.Fault.Message + ", which needs an approval")
		return Verdict{}
	}
	call.Exhausted, call.Inquiry = "", nil
	return v
}

// Asked adds the rule that asks about a call to a fault of it.
func (c *Call) Asked(f *fault.Fault) *fault.Fault {
	if c.Inquiry == nil {
		return f
	}
	if kind := c.Inquiry.Exhausted; kind != "" {
		f = f.With("exhausted", kind)
	}
	return f.With("rule", c.Inquiry.Rule).With("policy", c.Inquiry.Policy)
}

// CannotAsk is the fault of a call with an Inquiry where no question can be asked.
func (c *Call) CannotAsk() *fault.Fault {
	return c.Asked(fault.PolicyAsks.New("the rule %q requires an approval before %s, which cannot be asked for here", c.Inquiry.Rule, c.Message.Called()).
		WithFix("have the operator make the call, or change the rule"))
}

// Authority holds what the stages of every kernel use.
type Authority struct {
	Tokens     Tokens
	Processes  Processes
	Registry   Registry                                     // of syscalls; nil: none is registered
	Origin     string                                       // of the operator, unless its connection or its call chooses another
	ReadOrigin func(chosen string) (normal string, _ error) // normalizes an origin that the operator chose
	Now        func() int64                                 // the kernel's tick
	Reach      func(tick int64)                             // moves the kernel's tick
}

// Identify is the stage that gives a call its process, origin, tick and token. It refuses an agent that names another
// process (PROTOCOL 5). A tick that the operator names moves the kernel's tick.
func (a *Authority) Identify(call *Call) Verdict {
	var denied *fault.Fault
	var ahead int64
	operator := call.Caller.PID == Operator
	call.PID = call.Caller.PID
	if in, ok := call.Input.(schema.Targeted); ok {
		on := in.On()
		switch {
		case on.PID == nil || *on.PID == call.PID:
		case operator:
			call.PID = *on.PID
		default:
			denied = fault.CapabilityNotYours.New("pid %d may not act as pid %d", call.PID, *on.PID).WithFix("leave out pid, or name your own")
		}
		if on.Tick != nil && operator {
			if call.Probe != nil || call.Caller.Role != "" {
				ahead = *on.Tick
			} else {
				a.Reach(*on.Tick)
			}
		}
	}
	call.Tick = max(a.Now(), ahead)
	call.Token = a.Tokens.Token(call.PID)
	call.Origin = a.Origin
	if call.Caller.Origin != "" {
		call.Origin = call.Caller.Origin
	}
	if chosen := call.Message.Meta.Origin; chosen != "" && operator {
		origin, err := a.ReadOrigin(chosen)
		if err != nil {
			call.Origin = a.Origin
			return Deny(Invalid("metadata.origin", "is none: %v", err))
		}
		call.Origin = origin
	}
	if p := a.Processes.Process(call.PID); p != nil {
		call.Origin = p.Origin
	}
	return Deny(denied)
}

// Resumed is the question that calls of paused processes wait for.
const Resumed = "resumed"

// longestWait exceeds the life of any kernel.
const longestWait = 100 * 365 * 24 * time.Hour

// Running is the stage at which calls of a paused process wait (PROTOCOL 10). The operator's calls as that process
// pass.
func (a *Authority) Running(call *Call) Verdict {
	if call.Caller.PID == Operator {
		return Verdict{}
	}
	switch p := a.Processes.Process(call.Caller.PID); {
	case p == nil || !p.Paused || p.ExitTick != nil:
		return Verdict{}
	case call.Probe != nil:
		call.Probe.Why("its process is paused: it would wait")
		return Verdict{}
	}
	why := fault.ProcessPaused.New("pid %d was paused, and %s was not done", call.Caller.PID, call.Message.Type)
	return Verdict{Pending: &Pending{ID: Resumed, Wait: longestWait, Why: why}}
}

// Authorize is the stage that asks the token (CAP 2, 5). A command of the kernel's own for an agent passes: its
// domain judges what the agent may do.
func (a *Authority) Authorize(call *Call) Verdict {
	v := a.judge(call)
	if v.Allows() && call.Probe != nil {
		call.Probe.Why(a.grounds(call))
	}
	return v
}

func (a *Authority) judge(call *Call) Verdict {
	if _, ok := call.Input.(*schema.AcceptInput); ok && call.Caller.Kernel { // made for the process of another kernel
		return Deny(Authorize(a.Processes, call.PID, call.Token, schema.SyscallSendMsg.Row(), call.Tick))
	}
	if call.Caller.Kernel && call.Syscall.Internal {
		return Verdict{}
	}
	if f := inRole(call); f != nil {
		return Deny(f)
	}
	switch in := call.Input.(type) {
	case *schema.InvokeInput:
		return Deny(AuthorizeRegistered(a.Processes, call.PID, call.Token, in.Name, call.Tick))
	case *schema.ToolUseInput:
		return Deny(AuthorizeTool(a.Processes, call.PID, call.Token, in, call.Tick, a.serves(call)))
	case *schema.CallInput:
		if path, ok := schema.ToolPath(in.Syscall); ok { // the runner judges a path that it has to resolve
			denied, _ := AuthorizeName(a.Processes, call.PID, call.Token, callWord+":"+path, call.Tick, nil)
			return Deny(denied)
		}
	case *schema.RegisterInput:
		if schema.UserSpace(in.Name) {
			return Deny(authorizeProvider(a.Processes, call.PID, in.Name))
		}
	}
	return Deny(Authorize(a.Processes, call.PID, call.Token, call.Syscall, call.Tick))
}

func (a *Authority) serves(call *Call) func(tool string) bool {
	return Serves(a.Registry, call.Origin, call.Token, call.Tick)
}

// NoFutureTick is the stage that refuses a tick that has not come (PROTOCOL 6), except the operator's.
func NoFutureTick(call *Call) Verdict {
	if in, ok := call.Input.(schema.Targeted); ok {
		if on := in.On(); on.Tick != nil && *on.Tick > call.Tick {
			return Deny(fault.ClockAhead.New("Invalid input: tick must not be later than the kernel's, which is %d", call.Tick).At("tick"))
		}
	}
	return Verdict{}
}

// Probe marks a call that is only asked about, with Capability.Check. The stages of the gate judge
// it like a real call, without any effect: nothing is counted, no question is raised, the clock
// does not move.
type Probe struct {
	Operator bool // the operator asks: the answer says where rules are defined
	why      string

	at, exception string // of a rule that asks about the call
}

// Rule records where a rule that asks about the call is defined, and which exception would let the
// call through. Operator only.
func (p *Probe) Rule(at, exception string) {
	if p != nil && p.Operator {
		p.at, p.exception = at, exception
	}
}

// Why records why a stage allows the call. A real call has a nil Probe.
func (p *Probe) Why(why string) {
	if p != nil {
		p.why = why
	}
}

// Said returns and clears what Why recorded.
func (p *Probe) Said() string {
	why := p.why
	p.why = ""
	return why
}

// OfOperator reports whether the operator makes the call or asks about it, and so may know where rules are defined.
func (c *Call) OfOperator() bool {
	return c.Caller.PID == Operator || c.Probe != nil && c.Probe.Operator
}

// Explain asks the stages about a call that has a Probe, until one does not allow it. It returns each stage's result,
// and the verdict of the last.
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

// Explained is a stage's verdict on a call; why says what allows it.
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

// grounds says what allows a call that the token stage allows: for each process up the tree, the pattern and who
// granted it.
func (a *Authority) grounds(call *Call) string {
	pattern := func(g *schema.TokenGrant) string { return naming(g, call.Syscall) }
	switch in := call.Input.(type) {
	case *schema.InvokeInput:
		name := in.Name
		if schema.UserSpace(name) {
			name = callWord + ":" + name
		}
		pattern = func(g *schema.TokenGrant) string { return including(g.AllowedSyscalls, name) }
	case *schema.ToolUseInput:
		doubt := doubtful(in.Tool, a.serves(call))
		pattern = func(g *schema.TokenGrant) string { return toolPattern(g, in, doubt) }
	case *schema.CallInput:
		if path, ok := schema.ToolPath(in.Syscall); ok {
			pattern = func(g *schema.TokenGrant) string { return including(g.AllowedSyscalls, callWord+":"+path) }
		}
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

// MayAskAbout returns nil if a process may see what another one may do and has: the operator for all, an agent for
// itself and its descendants.
func MayAskAbout(processes Processes, asking, pid int64) error {
	if asking == Operator || asking == pid || Descends(processes, pid, asking) {
		return nil
	}
	return fault.CapabilityNotYours.New("pid %d may not see what pid %d may do: it is none of its descendants", asking, pid).
		WithFix("ask about yourself, or about a process that descends from you").With("pid", numbered(pid))
}
