// Package approval keeps the questions that rules ask people before a call (PROTOCOL 10, Approvals). It keeps their
// answers too. A question is about one call of one process, which its digest identifies. A stage of the gate raises
// the questions and has calls wait for the answers.
package approval

import (
	"cmp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/btree"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Bounds.
const (
	MaxEach = 1_000  // open questions of an agent
	MaxAll  = 4_096  // open questions of all agents
	maxKept = 5_000  // questions of all processes, including ended ones
	MaxData = 10_000 // bytes of a call's data that can be asked about: they fit an answer
)

// Approval is a question in the state. It is immutable.
type Approval struct {
	schema.ApprovalState
	Number  int64  `json:"number" min:"1"`
	Raised  int64  `json:"raised"`           // number of the change that raised it
	Changed int64  `json:"changed,omitzero"` // number of the change that answered it
	Message string `json:"message"`          // id of the call that it was raised for
}

// nameOf is the name of the question with that number.
func nameOf(number int64) string { return "q-" + strconv.FormatInt(number, 10) }

// numberOf is the number of the question with that name, 0 if it is no such name.
func numberOf(id string) int64 {
	number, err := strconv.ParseInt(strings.TrimPrefix(id, "q-"), 10, 64)
	if err != nil || number < 1 || nameOf(number) != id {
		return 0
	}
	return number
}

// state is the state of a question at a time: no change is recorded when time passes, or when its process ends.
func (d *Domain) state(a *Approval, now int64) string {
	if (a.State == schema.ApprovalWaiting || a.State == schema.ApprovalApproved) && d.over(a, now) {
		return schema.ApprovalExpired
	}
	return a.State
}

// terminated is the state of an ended process, remembered or not.
const terminated = "TERMINATED"

// over is the state of a question that has expired, or whose process has ended.
func (d *Domain) over(a *Approval, now int64) bool {
	if a.over(now) {
		return true
	}
	p := d.processes.Process(a.PID)
	return p != nil && p.State == terminated
}

// over reports whether the question applies to no call any more.
func (a *Approval) over(now int64) bool {
	return a.State == schema.ApprovalUsed || now >= cmp.Or(a.Until, a.Expires)
}

// Shell is what the domain needs of its surroundings. Its functions do not block, and may be called from any
// goroutine.
type Shell struct {
	Ask      func(*kernel.Call, schema.Request) bool // journals a question; false: not possible now
	Repeats  func(*kernel.Call) bool                 // reports whether a call gets an earlier outcome again, and does nothing
	Answered func(id string)                         // has the calls that wait for the answer decided again
	Raised   func(*Approval)                         // announces a new question
	Wait     time.Duration                           // how long a call waits for an answer
}

// Domain answers the syscalls of schema.Approval.
type Domain struct {
	kernel.Handlers
	processes kernel.Processes

	all      *btree.Map[int64, *Approval]  // by number
	digests  *btree.Map[string, *Approval] // the last one of each subject
	last     int64                         // number of the last question
	changes  int64                         // number of the last change
	raised   []*Approval                   // since the last Publish
	answered []*Approval                   // answered since the last Publish
	again    bool                          // the state was rebuilt

	shell atomic.Pointer[Shell]

	mu     sync.Mutex
	view   view                 // the state that the stage reads
	asked  map[string]*Approval // questions raised but not recorded yet, by digest
	issued int64                // number of the last question raised
}

// view is the published state. It is immutable.
type view struct {
	all     *btree.Map[int64, *Approval]
	digests *btree.Map[string, *Approval]
	changes int64
}

var (
	_ kernel.Domain    = (*Domain)(nil)
	_ kernel.Publisher = (*Domain)(nil)
)

// New returns a domain without questions.
func New(processes kernel.Processes) *Domain {
	d := &Domain{processes: processes, asked: make(map[string]*Approval)}
	d.Handlers = kernel.Bind(schema.Approval,
		kernel.Query(schema.ApprovalList, d.list),
		kernel.Command(schema.ApprovalDecide, d.decide, d.applyDecide),
		kernel.Command(schema.ApprovalSubscribe, d.subscribe, nil),
		kernel.Question(schema.ApprovalWatch, d.watch),
		kernel.Step(schema.ApprovalRequested, d.request, d.applyRequest),
		kernel.Step(schema.ApprovalUse, d.use, d.applyUse),
	)
	d.Reset()
	d.Publish()
	return d
}

// Serve enables questions. Before it, calls that a rule asks about are refused.
func (d *Domain) Serve(s Shell) { d.shell.Store(&s) }

// Reset forgets all questions.
func (d *Domain) Reset() {
	d.all, d.digests, d.last, d.changes = new(btree.Map[int64, *Approval]), new(btree.Map[string, *Approval]), 0, 0
	d.raised, d.answered, d.again = nil, nil, true
}

// Publish implements kernel.Publisher. It wakes the calls whose question was answered or lost.
func (d *Domain) Publish() {
	if !d.again && d.raised == nil && d.answered == nil {
		return
	}
	d.mu.Lock()
	before := d.view
	d.view = view{d.all.Copy(), d.digests.Copy(), d.changes}
	d.issued = max(d.issued, d.last)
	var answered []string
	if d.again { // questions in flight may be lost
		for _, a := range d.asked {
			answered = append(answered, a.ID)
		}
		clear(d.asked)
	}
	for _, a := range d.raised {
		if on := d.asked[a.subject()]; on != nil && on.Number == a.Number {
			delete(d.asked, a.subject())
		}
	}
	if before.all != nil && d.again {
		before.all.Scan(func(number int64, a *Approval) bool {
			if now, ok := d.all.Get(number); !ok || now.State != a.State {
				answered = append(answered, a.ID)
			}
			return true
		})
	}
	d.mu.Unlock()
	raised := d.raised
	for _, a := range d.answered {
		answered = append(answered, a.ID)
	}
	again := d.again
	d.raised, d.answered, d.again = nil, nil, false
	shell := d.shell.Load()
	if shell == nil {
		return
	}
	for _, id := range answered {
		shell.Answered(id)
	}
	for _, a := range raised {
		if !again || a.Raised > before.changes { // those of a rebuilt state were announced before
			shell.Raised(a)
		}
	}
}

// Advisory counts the approvals at a time that do not prove a person's decision, and returns the
// last of them, or nil.
func (d *Domain) Advisory(now int64) (n int, last *Approval) {
	d.mu.Lock()
	all := d.view.all
	d.mu.Unlock()
	all.Scan(func(_ int64, a *Approval) bool {
		if a.Advisory && a.State != schema.ApprovalRefused && now < cmp.Or(a.Until, a.Expires) {
			n, last = n+1, a
		}
		return true
	})
	return n, last
}

// request answers Approval.Requested.
func (d *Domain) request(*kernel.Call, *schema.ApprovalRequestedInput) (schema.SuccessOutput, error) {
	return schema.SuccessOutput{Success: true}, nil
}

func (d *Domain) applyRequest(e *kernel.Entry, in *schema.ApprovalRequestedInput) {
	number := numberOf(in.ID)
	if old, ok := d.digests.Get(subject(in.Digest, in.Exhausted)); number <= d.last || ok && !old.over(max(e.Time, in.Asked)) {
		return // raised by a stage that did not see the existing one
	}
	d.last = number
	d.changes++
	a := &Approval{Number: number, Raised: d.changes, Message: e.Meta.Causation}
	a.ApprovalRequestedInput = *in
	a.Data = schema.Value(string(in.Data)) // the input aliases the line
	a.State = schema.ApprovalWaiting
	if d.all.Len() >= maxKept {
		d.forget(e.Time)
	}
	d.put(a)
	d.raised = append(d.raised, a)
}

// forget drops questions that are over.
func (d *Domain) forget(now int64) {
	for _, a := range d.all.Values() {
		if !a.over(now) {
			continue
		}
		d.all.Delete(a.Number)
		if last, ok := d.digests.Get(a.subject()); ok && last.Number == a.Number {
			d.digests.Delete(a.subject())
		}
	}
}

// put replaces a question by a.
func (d *Domain) put(a *Approval) {
	d.all.Set(a.Number, a)
	if last, ok := d.digests.Get(a.subject()); !ok || last.Number <= a.Number {
		d.digests.Set(a.subject(), a)
	}
}

// decide answers Approval.Decide.
func (d *Domain) decide(call *kernel.Call, in *schema.ApprovalDecideInput) (out schema.ApprovalState, _ error) {
	a, ok := d.all.Get(numberOf(in.ID))
	switch {
	case !ok:
		return out, fault.ApprovalUnknown.New("there is no question %s, or it is forgotten: Approval.List names those that there are", fault.Clip(in.ID))
	case in.Digest != nil && *in.Digest != a.Digest:
		return out, fault.ApprovalOther.New("%s asks about something else than what was shown: Approval.List has what it asks", a.ID)
	case in.ForSeconds != nil && in.Decision != schema.Approve:
		return out, kernel.Invalid("for_seconds", "is only for approve: a refusal is valid until the question expires")
	case a.State == schema.ApprovalWaiting && !a.over(call.Time) && d.over(a, call.Time):
		return out, fault.ApprovalOver.New("pid %d has ended, and with it %s", a.PID, a.ID)
	case d.state(a, call.Time) == schema.ApprovalExpired:
		return out, fault.ApprovalOver.New("%s expired at %s, and was not answered in time", a.ID, clock(a.Expires))
	case a.State != schema.ApprovalWaiting:
		return out, fault.ApprovalOver.New("%s is %s already, at %s", a.ID, a.State, clock(a.Decided.At))
	}
	out = a.ApprovalState
	out.State = schema.ApprovalApproved
	if in.Decision == schema.Refuse {
		out.State = schema.ApprovalRefused
	}
	if in.ForSeconds != nil {
		out.Until = call.Time + *in.ForSeconds*1000
	}
	if in.Why != nil {
		out.Why = *in.Why
	}
	out.Decided = &schema.ApprovalDecided{At: call.Time, Key: call.Caller.Key, Via: cmp.Or(call.Caller.Via, "kernel"), Conn: call.Caller.Conn}
	out.Advisory = out.State == schema.ApprovalApproved && call.Caller.Key == "" && !d.confined(a.PID)
	return out, nil
}

// clock formats a time for people.
func clock(at int64) string { return time.UnixMilli(at).UTC().Format("15:04:05 UTC") }

// confined reports whether a process cannot act as its own operator: the kernel confines its
// program, or that of the ancestor for which it was spawned, and recognises it at every door.
func (d *Domain) confined(pid int64) bool {
	if pid == kernel.Operator { // it is the kernel's own question, about a program that is confined
		return true
	}
	for pid != kernel.Operator {
		p := d.processes.Process(pid)
		if p == nil {
			return false
		}
		if p.Command != nil {
			return p.Sandbox != nil && *p.Sandbox != "off" && *p.Sandbox != "none"
		}
		pid = p.ParentPID
	}
	return false
}

func (d *Domain) applyDecide(e *kernel.Entry, _ *schema.ApprovalDecideInput) {
	out := kernel.Reply[schema.ApprovalState](e, schema.ApprovalDecide.Output())
	old, ok := d.all.Get(numberOf(out.ID))
	if !ok {
		return
	}
	a := *old
	data := a.Data
	a.ApprovalState, a.Data = *out, data
	d.changes++
	a.Changed = d.changes
	d.put(&a)
	d.answered = append(d.answered, &a)
}

// use answers Approval.Use.
func (d *Domain) use(_ *kernel.Call, in *schema.ApprovalUseInput) (out schema.SuccessOutput, _ error) {
	if a, ok := d.all.Get(numberOf(in.ID)); !ok || a.State != schema.ApprovalApproved || a.Until != 0 {
		return out, fault.ApprovalOver.New("the approval %s is used up", in.ID)
	}
	return schema.SuccessOutput{Success: true}, nil
}

func (d *Domain) applyUse(_ *kernel.Entry, in *schema.ApprovalUseInput) {
	if old, ok := d.all.Get(numberOf(in.ID)); ok {
		a := *old
		a.State = schema.ApprovalUsed
		d.put(&a)
		d.answered = append(d.answered, &a) // other calls that wait for it need their own question
	}
}
