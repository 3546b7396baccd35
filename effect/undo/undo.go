package undo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/capability"
	"github.com/promptware-os/pwos/kernel/ipc"
	"github.com/promptware-os/pwos/kernel/memory"
	"github.com/promptware-os/pwos/kernel/rewind"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// History is the journal with its past states. Its methods are slow and safe for concurrent use.
type History interface {
	// Head returns the last entry. All entries up to there can be read.
	Head(ctx context.Context) (uint64, error)
	// Entry returns the call of an entry; for a query without its data.
	Entry(ctx context.Context, seq uint64) (*kernel.Call, error)
	// Fold returns the state of domains after an entry. progress is called at intervals with the progress; it may be nil.
	Fold(ctx context.Context, until uint64, progress func(read, of int64), domains ...schema.Domain) (*Moment, error)
	// Scan calls each with the commands of a domain from one entry to another, until it returns an error. A call is valid
	// until each returns.
	Scan(ctx context.Context, from, to uint64, wanted schema.Domain, each func(*kernel.Call) error) error
}

// Moment is a past state. Only the requested domains have their past state.
type Moment struct {
	Seq    uint64
	Tick   int64
	Memory *memory.Domain
	Tokens *capability.Registry
	Mail   *ipc.Domain
}

// Kernel is the kernel that makes the commands of an undo.
type Kernel interface {
	// Do returns when a command is on disk.
	Do(ctx context.Context, own kernel.Own) (kernel.Answer, error)
}

// Runner runs undos, one at a time, so that the second of two for one entry sees the effect of the first.
type Runner struct {
	History History
	Kernel  Kernel
	// Changes returns the number of changes of a domain that were sent to the journal.
	Changes func(schema.Domain) int64

	turn  chan struct{}
	queue chan struct{} // the running undo and the waiting ones
}

// mostWaiting bounds the undos in the queue. A tool's undo makes calls, which count among the operator's effects.
const mostWaiting = 4

// New returns a Runner with the settings of r.
func New(r Runner) *Runner {
	r.turn, r.queue = make(chan struct{}, 1), make(chan struct{}, mostWaiting)
	return &r
}

// again bounds the attempts of an undo after concurrent changes.
const again = 8

// Undo is the runner of Message.Undo.
func (r *Runner) Undo(ctx context.Context, job *kernel.Job, do *rewind.Undo) (schema.UndoOutput, error) {
	select {
	case r.queue <- struct{}{}:
		defer func() { <-r.queue }()
	default:
		return schema.UndoOutput{}, fault.CallTooMany.New("%d undos are running, as many as may", mostWaiting)
	}
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return schema.UndoOutput{}, ctx.Err()
	}
	defer func() { <-r.turn }()
	for i := 1; ; i++ {
		a := &attempt{Runner: r, job: job, do: do}
		out, err := a.run(ctx)
		if i < again && errors.Is(err, errMeanwhile) {
			continue
		}
		return out, err
	}
}

// errMeanwhile means that the state was changed after the journal was read.
var errMeanwhile = errors.New("changed meanwhile")

// attempt is one attempt of an undo, on the journal up to head.
type attempt struct {
	*Runner
	job  *kernel.Job
	do   *rewind.Undo
	head uint64 // last entry that was read

	seq   uint64 // entry that is undone
	entry *kernel.Call
	calls int // number of calls of user-space syscalls
	out   schema.UndoOutput
}

// plan describes how an entry is undone.
type plan struct {
	domain   schema.Domain
	since    int64                   // changes of the domain before the journal was read
	touches  func(*kernel.Call) bool // whether a later command changed the same; nil: the step checks that
	step     schema.Request          // command that reverts the change
	undoes   *schema.Undoes          // the part of the step's data
	moment   []schema.Domain         // further domains that the step reads
	answered func(answer []byte)     // reads the step's answer
}

func (a *attempt) run(ctx context.Context) (out schema.UndoOutput, err error) {
	since := make(map[schema.Domain]int64)
	for _, name := range []schema.Domain{schema.Memory, schema.Capability, schema.Ipc} {
		since[name] = a.Changes(name) // before Head, so that the counted changes are in the journal up to there
	}
	if a.head, err = a.History.Head(ctx); err != nil {
		return out, err
	}
	if err := a.find(ctx, a.do.Seq); err != nil {
		return out, err
	}
	a.out = schema.UndoOutput{Seq: int64(a.seq), Type: a.entry.Message.Type, PID: a.entry.PID, DryRun: a.do.DryRun}
	if in, ok := a.entry.Input.(*schema.CallInput); ok {
		return a.tool(ctx, in)
	}
	p, err := a.plan(ctx)
	if err != nil {
		return out, err
	}
	if err := a.stands(ctx, p); err != nil {
		return out, err
	}
	p.undoes.Seq, p.undoes.By = int64(a.seq), a.job.ID
	if a.do.DryRun {
		return a.out, a.pretend(ctx, p)
	}
	if p.touches != nil {
		p.since = since[p.domain]
		p.undoes.Since = &p.since
	}
	answer, err := a.Kernel.Do(context.Background(), kernel.Own{
		Caller: kernel.Caller{Origin: a.entry.Origin, Kernel: true}, Request: p.step,
		Causation: a.entry.Message.Meta.ID, Correlation: a.entry.Message.Meta.Correlation,
	})
	if p.touches != nil && (errors.Is(err, fault.MemoryChanged) || errors.Is(err, fault.UndoOvertaken)) {
		return out, fmt.Errorf("%w: %w", errMeanwhile, err)
	}
	if err != nil {
		return out, err
	}
	if a.out.By = int64(answer.Seq); p.answered != nil {
		p.answered(answer.Data)
	}
	return a.out, nil
}

// find finds the entry to undo: for an undo, which has two entries, that of the command that it made.
func (a *attempt) find(ctx context.Context, seq uint64) error {
	entry, err := a.History.Entry(ctx, seq)
	if err != nil {
		return err
	}
	a.seq, a.entry = seq, entry
	if end, ok := entry.Input.(*schema.EffectEnd); ok && entry.Syscall.Ends() {
		if intent := uint64(end.Intent); intent < seq && intent > 0 {
			return a.find(ctx, intent)
		}
	}
	switch {
	case entry.Err != nil:
		return fault.UndoNothing.New("entry %d changed nothing: %s was refused or failed: %s", seq, entry.Message.Type, entry.Err.Message)
	case entry.Repeated:
		return fault.UndoNothing.New("entry %d changed nothing: it repeats an earlier call, with the same idempotency key, and was given its answer", seq)
	case entry.Syscall == nil, entry.Syscall.Kind != schema.KindCommand:
		return fault.UndoNothing.New("entry %d changed nothing: %s only asks", seq, entry.Message.Type)
	case entry.Syscall != schema.MessageUndo.Row():
		return nil
	}
	return a.madeBy(ctx, seq, entry.Message.Meta.ID)
}

// errFound ends a scan.
var errFound = errors.New("found")

// madeBy finds the command that an undo made.
func (a *attempt) madeBy(ctx context.Context, undo uint64, id string) error {
	var found uint64
	for _, name := range []schema.Domain{schema.Memory, schema.Capability, schema.Ipc} {
		err := a.History.Scan(ctx, undo+1, a.head, name, func(call *kernel.Call) error {
			if u := undone(call); u != nil && u.By == id {
				found = call.Proof.Seq
				return errFound
			}
			return nil
		})
		if errors.Is(err, errFound) {
			return a.find(ctx, found)
		}
		if err != nil {
			return err
		}
	}
	return fault.UndoNothing.New("entry %d changed nothing: it is an undo that did nothing, or that called a tool", undo).
		WithFix("a tool's undo is not undone by the kernel")
}

// undone returns the entry that a command undid; nil if it is not an undo, or failed.
func undone(call *kernel.Call) *schema.Undoes {
	u, ok := call.Input.(schema.Undoing)
	if !ok || !happened(call) {
		return nil
	}
	return u.Undone()
}

// happened reports whether a command took effect.
func happened(call *kernel.Call) bool { return call.Err == nil && !call.Repeated }

// change is a later command that changed the same state.
type change struct {
	seq    uint64
	pid    int64
	typ    string
	undoes uint64 // 0: it is not an undo
}

// stands refuses the undo of a change after later changes, and names them. A later change and its undo cancel each
// other out: an undo is only made if its change is the last one, so that it restores the state before.
func (a *attempt) stands(ctx context.Context, p *plan) error {
	var later []change
	err := a.History.Scan(ctx, a.seq+1, a.head, p.domain, func(call *kernel.Call) error {
		next := change{seq: call.Proof.Seq, pid: call.PID, typ: call.Message.Type}
		if u := undone(call); u != nil {
			next.undoes = uint64(u.Seq)
			if i := slices.IndexFunc(later, func(c change) bool { return c.seq == next.undoes }); i >= 0 {
				later = slices.Delete(later, i, i+1)
				return nil
			}
		}
		if next.undoes == a.seq || p.touches != nil && happened(call) && p.touches(call) {
			later = append(later, next)
		}
		return nil
	})
	if err != nil || len(later) == 0 {
		return err
	}
	if first := later[0]; first.undoes == a.seq {
		return fault.UndoAlready.New("entry %d is already undone by seq %d", a.seq, first.seq).
			WithFix("to do it again, undo entry %d", first.seq).With("by", strconv.FormatUint(first.seq, 10))
	}
	var by []string
	for _, c := range later[:min(len(later), mostListed)] {
		by = append(by, fmt.Sprintf("seq %d of pid %d (%s)", c.seq, c.pid, c.typ))
	}
	list := strings.Join(by, ", ")
	if more := len(later) - len(by); more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return fault.UndoOvertaken.New("what entry %d did does not stand any more: it was changed by %s", a.seq, list).
		WithFix("undo these first, the latest first").With("later", list)
}

// mostListed is the number of later changes that an error names.
const mostListed = 20

// pretend decides the step on the state at head, without applying it.
func (a *attempt) pretend(ctx context.Context, p *plan) error {
	m, err := a.History.Fold(ctx, a.head, a.progress(), append(p.moment, p.domain)...)
	if err != nil {
		return err
	}
	call := kernel.NewCall(kernel.Request{
		Message: schema.Message{Kind: schema.KindCommand, Type: p.step.Row.Type}, Syscall: p.step.Row, Input: p.step.Input,
	}, kernel.Moment{Tick: m.Tick, Time: a.job.Time})
	call.Origin = a.entry.Origin
	domain := map[schema.Domain]kernel.Domain{schema.Memory: m.Memory, schema.Capability: m.Tokens, schema.Ipc: m.Mail}[p.domain]
	result, err := domain.Decide(&call)
	if err != nil {
		return err
	}
	if p.answered != nil {
		p.answered(result.Data)
	}
	return nil
}

// progress returns the function that pushes progress to the caller; nil if it was not requested.
func (a *attempt) progress() func(read, of int64) { return rewind.Told(a.job.Progress, a.job.ID) }

// before returns the state of a domain before the undone entry.
func (a *attempt) before(ctx context.Context, domain schema.Domain) (*Moment, error) {
	return a.History.Fold(ctx, a.seq-1, a.progress(), domain)
}
