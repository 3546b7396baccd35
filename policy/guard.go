package policy

import (
	"context"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cedar-policy/cedar-go/types"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Guard is the Policy stage of a kernel's gate, with the present rules. It is safe for concurrent use.
type Guard struct {
	judge   Judge // without rules
	holds   atomic.Pointer[holding]
	shipped func() map[string]*holding // by profile
}

// holding is the present state.
type holding struct {
	Judge
	decided map[*Rule]*atomic.Int64
	invalid string // why the files could not be loaded; "": they were loaded
}

// NewGuard returns a guard without rules, which allows every call.
func NewGuard(forms Forms, processes kernel.Processes, registry kernel.Registry) *Guard {
	judge := Judge{Forms: forms, Processes: processes, Registry: registry}
	return &Guard{judge: judge, shipped: sync.OnceValue(func() map[string]*holding { return shippedRules(judge) })}
}

func newHolding(judge Judge, set *Set) *holding {
	h := &holding{Judge: judge, decided: make(map[*Rule]*atomic.Int64, len(set.Rules))}
	h.Set = set
	for _, r := range set.Rules {
		h.decided[r] = new(atomic.Int64)
	}
	return h
}

// Use sets the present rules; nil: none.
func (g *Guard) Use(set *Set) {
	if set == nil {
		g.holds.Store(nil)
		return
	}
	g.holds.Store(newHolding(g.judge, set))
}

// Refuse makes the guard refuse all calls of agents because the files could not be loaded, for the given reason.
func (g *Guard) Refuse(why string) { g.holds.Store(&holding{invalid: why}) }

// Stage judges a call. The operator acting as itself is exempt. If a rule asks, the call proceeds to the Approval
// stage with an Inquiry.
func (g *Guard) Stage(call *kernel.Call) kernel.Verdict {
	before := call.Inquiry
	call.Inquiry = nil
	h := g.holds.Load()
	if call.PID != kernel.Operator {
		h = g.forCall(call, h)
	}
	switch {
	case h == nil:
		call.Probe.Why("there is no policy")
		return kernel.Verdict{}
	case call.PID == kernel.Operator:
		call.Probe.Why("the operator is exempt")
		return kernel.Verdict{}
	case call.Syscall == nil || !judged(call.Syscall):
		return kernel.Verdict{}
	}
	if h.invalid != "" {
		f := fault.PolicyInvalid.New("the policy of this kernel is not valid, so all calls of agents are refused").
			WithFix("ask the operator to correct it: pwos policy check")
		if call.OfOperator() {
			f = f.With("at", h.invalid)
		}
		return kernel.Deny(f)
	}
	d := h.Decide(call)
	if d.Rule == nil {
		call.Probe.Why("no rule forbids it")
		return kernel.Verdict{}
	}
	more := ""
	switch {
	case d.more(call):
		more = call.Exhausted
	case call.Exhausted != "": // the budget has already refused it
		return kernel.Verdict{}
	}
	if call.Probe == nil && !call.Parked && (before == nil || before.Rule != d.Rule.ID) { // once for each call, although it may pass more than once
		h.decided[d.Rule].Add(1)
	}
	exception := h.explained(call, d)
	if d.Failed == nil && d.Rule.Ask > 0 {
		data, err := h.Normal(call)
		if err == nil {
			call.Probe.Why(fmt.Sprintf("the rule %q requires an approval", d.Rule.ID))
			call.Probe.Rule(d.Rule.At(), exception)
			call.Inquiry = &kernel.Inquiry{Rule: d.Rule.ID, Fix: d.Rule.Fix, Policy: h.Hash, Stands: d.Rule.Ask, Data: data, Exhausted: more}
			return kernel.Verdict{}
		}
		d.Failed = err
	}
	f := h.fault(call, d)
	if exception != "" && d.Failed == nil {
		f = f.With("exception", exception)
	}
	return kernel.Deny(f)
}

// Asks reports whether a rule can require an approval.
func (g *Guard) Asks() bool {
	h := g.holds.Load()
	return h != nil && h.Set != nil && slices.ContainsFunc(h.Rules, func(r *Rule) bool { return r.Ask > 0 })
}

// JudgesPrograms reports whether a rule is about what a process executes, or could be, since the files could not be loaded.
func (g *Guard) JudgesPrograms(pid int64) bool {
	h := g.holds.Load()
	return h != nil && (h.invalid != "" || h.executes != nil) || g.ofProfile(pid, h) != nil
}

// Named returns the programs, with their arguments, that a tool's command names and a rule asks about.
func (g *Guard) Named(call *kernel.Call, in *schema.ToolUseInput) (list [][]string) {
	h := g.forCall(call, g.holds.Load())
	if h == nil || h.Set == nil || h.executes == nil {
		return nil
	}
	for _, argv := range commandsOf(in) {
		if h.evaluateNamed(call, argv).rank() == 1 {
			list = append(list, argv)
		}
	}
	return list
}

// Program reports whether the policy may refuse that a process of an agent executes a program, so that it has to be called for. rule is
// the one that decides; nil if the files could not be loaded.
func (g *Guard) Program(pid, tick int64, in *schema.ProgramExecInput) (decides bool, rule *Rule) {
	h := g.holds.Load()
	if h != nil && h.invalid != "" {
		return true, nil
	}
	row := schema.ProgramExec.Row()
	call := kernel.NewCall(kernel.Request{
		Caller: kernel.Caller{PID: pid, Via: "channel"}, Message: schema.Message{Type: row.Type}, Syscall: row, Input: in,
	}, kernel.Moment{Tick: tick})
	call.PID = pid
	if p := g.judge.Processes.Process(pid); p != nil {
		call.Origin = p.Origin
	}
	if h = g.forCall(&call, h); h == nil {
		return false, nil
	}
	rule = h.Decide(&call).Rule
	return rule != nil, rule
}

// JudgesBodies reports whether a rule reads the body of a fetch that is sent by reference.
func (g *Guard) JudgesBodies() bool {
	h := g.holds.Load()
	return h != nil && h.Set != nil && h.byAction[types.NewEntityUID(syscallAction, types.String(schema.HTTPFetch.Type))].needs["bodyRef"]
}

// explained returns the narrowest exception from a rule for a call that the operator asks about, or "".
func (h *holding) explained(call *kernel.Call, d Decision) string {
	if call.Probe == nil || !call.Probe.Operator || d.Failed != nil {
		return ""
	}
	clause, err := h.exception(call, d)
	if err != nil { // for example, a text is too long
		return ""
	}
	return clause
}

// Redirected judges the target of a redirect of an allowed fetch.
func (g *Guard) Redirected(job *kernel.Job, in *schema.HTTPFetchInput) *fault.Fault {
	row := schema.HTTPFetch.Row()
	call := kernel.NewCall(kernel.Request{
		Caller: kernel.Caller{PID: job.PID, Via: job.Via}, Message: schema.Message{Type: row.Type}, Syscall: row, Input: in,
	}, kernel.Moment{Tick: job.Tick, Time: job.Time})
	call.PID, call.Origin = job.PID, job.Origin
	if v := g.Stage(&call); v.Fault != nil || call.Inquiry == nil {
		return v.Fault
	}
	return call.CannotAsk()
}

// fault returns the fault of a call that a decision refuses. Only the operator sees where the rule is defined.
func (s *Set) fault(call *kernel.Call, d Decision) *fault.Fault {
	what, without := call.Message.Called(), "do not make this call"
	if in, ok := call.Input.(*schema.ProgramExecInput); ok {
		what, without = "exec of "+fault.Clip(path.Base(in.Path)), "do without this program"
	}
	if d.named != nil {
		what, without = "exec of "+fault.Clip(path.Base(d.named[0]))+", which the command names", "do without this program"
	}
	var f *fault.Fault
	switch {
	case d.Failed != nil:
		f = fault.PolicyFailed.New("the rule %q cannot be evaluated for this %s, which is therefore refused: %v", d.Rule.ID, what, d.Failed)
	default:
		f = fault.PolicyDenied.New("the rule %q forbids this %s", d.Rule.ID, what)
	}
	if call.OfOperator() {
		f.Message += " (" + d.Rule.At() + ")"
		f = f.With("at", d.Rule.At())
	}
	switch {
	case d.Rule.Fix != "":
		f = f.WithFix("%s", d.Rule.Fix)
	case d.Failed != nil:
		f = f.WithFix("send the data that the rule reads in a form that it can compare, or ask the operator to change the rule")
	default:
		f = f.WithFix("%s, or ask the operator to change the rule", without)
	}
	return f.With("rule", d.Rule.ID).With("policy", s.Hash)
}

// Show returns the answer of Policy.Show, with at most most rules.
func (g *Guard) Show(most int) schema.PolicyShowOutput {
	out := schema.PolicyShowOutput{Files: []string{}, Rules: []schema.PolicyRule{}}
	h := g.holds.Load()
	switch {
	case h == nil:
		return out
	case h.invalid != "":
		out.Invalid = h.invalid
		return out
	}
	out.Hash, out.Files = h.Hash, h.Files
	for i, r := range h.Rules {
		if i == most {
			out.More = int64(len(h.Rules) - most)
			break
		}
		one := schema.PolicyRule{ID: r.ID, At: r.At(), Decided: h.decided[r].Load()}
		if r.Ask > 0 {
			one.Ask = r.Ask.String()
		}
		out.Rules = append(out.Rules, one)
	}
	return out
}

// Loader loads the rules of the configuration into a Guard.
type Loader struct {
	*Guard
	config string // path of the configuration, or ""
	log    *slog.Logger
	note   func(schema.Request) // journals that rules were loaded

	mu sync.Mutex // serializes loading
}

// NewLoader returns a loader of the rules in the directory of the configuration at that path ("": none), for a guard.
func NewLoader(config string, guard *Guard, log *slog.Logger) *Loader {
	return &Loader{Guard: guard, config: config, log: log}
}

// Begin loads the rules at the start. note journals them if there are any. If they are invalid, the calls of agents are
// refused, and the operator is served.
func (p *Loader) Begin(note func(schema.Request)) {
	p.note = note
	if _, err := p.load(); err != nil {
		why := fault.Of(err).Text()
		p.log.Error("calls of agents are refused: the policy is not valid", "problem", why)
		p.Guard.Refuse(why)
	}
}

// read compiles the rules in the files; nil: there are no files.
func (p *Loader) read() (set *Set, warnings []string, err error) {
	files, err := Read(p.config)
	if err != nil {
		return nil, nil, fault.PolicyInvalid.New("the policy cannot be read").Wrap(err)
	}
	set, problems := Compile(files)
	for _, one := range problems {
		if !one.Warning {
			return nil, nil, fault.PolicyInvalid.New("%s", one)
		}
		warnings = append(warnings, strings.Replace(one.String(), "warning: ", "", 1))
	}
	return set, warnings, nil
}

// load loads the rules of all files. If that fails, it changes nothing.
func (p *Loader) load() (*schema.PolicyReloadOutput, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	set, warnings, err := p.read()
	if err != nil {
		return nil, err
	}
	out := &schema.PolicyReloadOutput{Files: []string{}, Warnings: append([]string{}, warnings...)}
	before := p.Guard.Show(0)
	if set != nil {
		out.Hash, out.Files, out.Rules = set.Hash, set.Files, int64(len(set.Rules))
	}
	if set != nil || before.Hash != "" || before.Invalid != "" {
		p.note(schema.PolicyLoaded.With(&schema.PolicyLoadedInput{Hash: out.Hash, Files: out.Files})) // this entry precedes the calls that the rules judge
		p.log.Info("policy loaded", "hash", out.Hash, "files", len(out.Files), "rules", out.Rules)
	}
	for _, warning := range warnings {
		p.log.Warn("policy", "warning", warning)
	}
	p.Guard.Use(set)
	return out, nil
}

// Reload is the runner of Policy.Reload.
func (p *Loader) Reload(context.Context, *kernel.Job, *schema.PolicyReloadInput) (*schema.PolicyReloadOutput, error) {
	return p.load()
}

// shownRules bounds the rules in an answer of Policy.Show, so that they fit a line.
const shownRules = 60

// Shown returns the answer of Policy.Show.
func (p *Loader) Shown() schema.PolicyShowOutput { return p.Guard.Show(shownRules) }
