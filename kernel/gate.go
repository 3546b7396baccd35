package kernel

import (
	"time"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Gate decides whether a call may go on. Every call passes it but the kernel's own steps, and so does every question of a
// subscription: whatever refuses, asks or delays is one of its stages. They are asked in this order, and the first that does not
// allow decides. A nil stage allows.
type Gate struct {
	Bounds   Stage // the caller is not over a bound; first, because what is over one leaves no entry
	Identity Stage // as which process, in which origin and at which tick the call is made
	Pause    Stage // its caller is not paused: else it waits
	Token    Stage // that process may call the syscall
	Tick     Stage // the tick that it names has come
	Quota    Stage
	Budget   Stage
	Policy   Stage
	Approval Stage
}

// Stage judges one thing about a call. It may fill in what the stages behind it, and the domain, go by.
type Stage func(*Call) Verdict

// Verdict is what a stage, or the gate, says of a call. The zero Verdict allows it.
type Verdict struct {
	Fault   *fault.Fault // it is refused
	Pending *Pending     // it waits
}

// Pending is a question that has to be answered before a call may go on. The call passes the gate again when it is.
type Pending struct {
	ID   string
	Wait time.Duration // for so long the call waits; then it is refused
	Why  *fault.Fault  // with this; nil: it waits for an approval
}

// Inquiry is what somebody has to be asked before a call.
type Inquiry struct {
	Rule   string        // that has it asked
	Fix    string        // what that rule advises; "": nothing
	Policy string        // digest of the files that the rule stands in
	Stands time.Duration // how long there is for an answer
	Data   []byte        // of the call, normalised: what the handler goes by, in the form of RFC 8785

	Exhausted string // the kind of budget of which the call needs more than is left, which the rule asks about; "": none
}

// Approval is what lets a call through where somebody is asked.
type Approval struct {
	ID, Rule, Policy string
	Exhausted        string          // see Inquiry
	Advisory         bool            // see schema.ApprovalState
	Use              *schema.Request // uses it up, before the call takes effect; nil: it lasts
	Used             bool            // that is done: the call, and what a subscription goes on with, passes
}

// Deny is the verdict that refuses a call.
func Deny(why *fault.Fault) Verdict { return Verdict{Fault: why} }

// Pend is the verdict that has a call wait for the answer to a question.
func Pend(id string, wait time.Duration) Verdict {
	return Verdict{Pending: &Pending{ID: id, Wait: wait}}
}

// Allows reports whether the call may go on.
func (v Verdict) Allows() bool { return v.Fault == nil && v.Pending == nil }

// stageNames are the names of the stages, in the order in which they are asked.
var stageNames = [...]string{"bounds", "identity", "pause", "token", "tick", "quota", "budget", "policy", "approval"}

// budgetStage is the place of the Budget stage among them.
const budgetStage = 6

func (g *Gate) stages() [len(stageNames)]Stage {
	return [...]Stage{g.Bounds, g.Identity, g.Pause, g.Token, g.Tick, g.Quota, g.Budget, g.Policy, g.Approval}
}

// Admit asks the stages. A call that may not wait any longer is refused where it would have to.
func (g *Gate) Admit(call *Call) Verdict {
	for i, stage := range g.stages() {
		if stage == nil {
			continue
		}
		if v := g.ask(i, stage, call); !v.Allows() {
			switch q := v.Pending; {
			case q == nil:
			case q.Why != nil && call.Gone: // a pause has no end that its calls would come to
				return Deny(q.Why)
			case q.Why == nil && (call.Final || call.Lapsed):
				return Deny(call.Asked(fault.ApprovalPending.New("%s waits for the approval %s, and was not done", call.Message.Called(), q.ID).
					WithFix("have it approved, with \"pwos approve %s\", and make the same call again", q.ID).With("approval", q.ID)))
			}
			return v
		}
	}
	if call.Inquiry != nil && g.Approval == nil {
		return Deny(call.CannotAsk())
	}
	return Verdict{}
}

// ask asks one stage. A call that needs more than is left of a budget goes on where a rule has somebody asked about that.
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
		call.Probe.Why(v.Fault.Message + ", which a rule has somebody asked about")
		return Verdict{}
	}
	call.Exhausted, call.Inquiry = "", nil
	return v
}

// Asked adds the rule that has somebody asked before a call to a fault of it.
func (c *Call) Asked(f *fault.Fault) *fault.Fault {
	if c.Inquiry == nil {
		return f
	}
	if kind := c.Inquiry.Exhausted; kind != "" {
		f = f.With("exhausted", kind)
	}
	return f.With("rule", c.Inquiry.Rule).With("policy", c.Inquiry.Policy)
}

// CannotAsk is the fault of a call with an Inquiry where nobody can be asked.
func (c *Call) CannotAsk() *fault.Fault {
	return c.Asked(fault.PolicyAsks.New("the rule %q has somebody asked before %s, and here nobody can be", c.Inquiry.Rule, c.Message.Called()).
		WithFix("have the operator make the call, or change the rule"))
}

// Authority is what the stages that every kernel has look at.
type Authority struct {
	Tokens     Tokens
	Processes  Processes
	Origin     string                                       // of the operator, unless its connection or its call says otherwise
	ReadOrigin func(chosen string) (normal string, _ error) // puts an origin that the operator chooses into its normal form
	Now        func() int64                                 // the kernel's tick
	Reach      func(tick int64)                             // moves it on
}

// Identify is the stage that gives a call its process, origin, tick and token. It refuses an agent that names another process
// (PROTOCOL 5). A tick that the operator names moves the kernel's on.
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

// Resumed is the question that calls of paused processes wait for the answer to.
const Resumed = "resumed"

// forever is longer than any kernel lives.
const forever = 100 * 365 * 24 * time.Hour

// Running is the stage that has the calls of a paused process wait (PROTOCOL 10). What the operator does as that process goes on.
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
	return Verdict{Pending: &Pending{ID: Resumed, Wait: forever, Why: why}}
}

// Authorize is the stage that asks the token (CAP 2, 5). A command of the kernel's own in an agent's name passes: its domain
// judges what the agent may do.
func (a *Authority) Authorize(call *Call) Verdict {
	v := a.authorize(call)
	if v.Allows() && call.Probe != nil {
		call.Probe.Why(a.grounds(call))
	}
	return v
}

func (a *Authority) authorize(call *Call) Verdict {
	if call.Caller.Kernel && call.Syscall.Internal {
		return Verdict{}
	}
	if f := inRole(call); f != nil {
		return Deny(f)
	}
	switch in := call.Input.(type) {
	case *schema.InvokeInput:
		return Deny(AuthorizeRegistered(a.Processes, call.PID, call.Token, in.Name, call.Tick))
	case *schema.RegisterInput:
		if schema.UserSpace(in.Name) {
			return Deny(authorizeProvider(a.Processes, call.PID, in.Name))
		}
	}
	return Deny(Authorize(a.Processes, call.PID, call.Token, call.Syscall, call.Tick))
}

// NoFutureTick is the stage that refuses a tick which has not come (PROTOCOL 6). The operator's has.
func NoFutureTick(call *Call) Verdict {
	if in, ok := call.Input.(schema.Targeted); ok {
		if on := in.On(); on.Tick != nil && *on.Tick > call.Tick {
			return Deny(fault.ClockAhead.New("Invalid input: tick must not lie ahead of the kernel's, which is %d", call.Tick).At("tick"))
		}
	}
	return Verdict{}
}
