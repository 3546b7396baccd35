// Package step remembers the steps of agents (PROTOCOL 12, Steps).
//
// A step is what one tool call, or one period of activity, did. The state has who made it, when, and how much it changed. The contents
// are in stores beside the kernel, for which the shell answers.
package step

import (
	"context"
	"path"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/tidwall/btree"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// MaxKept bounds the steps that are remembered. The journal has all.
const MaxKept = 16_384

// Record is a step in one directory, with the first of its files and without the items of other lists. It is immutable.
type Record struct {
	schema.StepState
	Number int64 `json:"number" min:"1"` // among all records
}

// View is a published state. It is immutable.
type View struct {
	records *btree.Map[int64, *Record]
	names   *btree.Map[string, int64] // number of the last step, by name of the agent
}

// Last returns the number of the last step of a name, 0 if it has none.
func (v *View) Last(agent string) int64 {
	last, _ := v.names.Get(agent)
	return last
}

// Of returns the remembered records of a name, oldest first; of all for "".
func (v *View) Of(agent string) (list []*Record) {
	v.records.Scan(func(_ int64, r *Record) bool {
		if agent == "" || r.Agent == agent {
			list = append(list, r)
		}
		return true
	})
	return list
}

// Shell is what has the contents of steps. Its methods may take long, and are safe for concurrent use.
type Shell interface {
	// Settle returns once the steps of all programs that have ended are recorded; with now, also what programs without hooks have done
	// until now, although their period of activity may not be over.
	Settle(ctx context.Context, now bool) error
	// Reviews returns the copies of directories that wait to be applied or discarded, by the names of their agents.
	Reviews() []schema.StepReview
	// Trees returns the directories that are kept at the moment.
	Trees() []schema.StepTree
	// Whole adds to records of one step the items of their lists, as far as they are kept.
	Whole(ctx context.Context, records []schema.StepState) error
	// Changed returns those of the records that changed a path or something below it, the last first, at most so many.
	Changed(ctx context.Context, records []*Record, path string, most int) ([]*Record, error)
	// Prompt returns the text of a prompt; "" if it is not kept.
	Prompt(digest string) (string, error)
	// Diff returns a part of the text of what records changed together, and whether there is more.
	Diff(ctx context.Context, do *Diff) (text []byte, more bool, err error)
}

// Diff is a question of Step.Diff.
type Diff struct {
	Review  string // name of an agent whose copy is asked for, in place of Records
	Records []*Record
	Path    string // "": all
	Offset  int64
}

// Undo is the work of a Step.Undo.
type Undo struct {
	*schema.StepUndoInput
	Time int64 // of the call, in Unix milliseconds
}

// Domain answers the syscalls of schema.StepDomain.
type Domain struct {
	kernel.Handlers
	processes kernel.Processes
	shell     atomic.Pointer[Shell]

	records *btree.Map[int64, *Record]
	names   *btree.Map[string, int64]
	last    int64 // number of the last record
	view    atomic.Pointer[View]
	dirty   bool // the view is older than the state
}

var (
	_ kernel.Domain    = (*Domain)(nil)
	_ kernel.Publisher = (*Domain)(nil)
)

// New returns a domain without steps.
func New(processes kernel.Processes) *Domain {
	d := &Domain{processes: processes}
	d.Handlers = kernel.Bind(schema.StepDomain,
		kernel.Effect(schema.StepBegin, same[schema.StepBeginInput]),
		kernel.Step(schema.StepBegin.End, kernel.End, d.applyBegan),
		kernel.Effect(schema.StepEnd, same[schema.StepEndInput]),
		kernel.Step(schema.StepEnd.End, kernel.End, nil),
		kernel.Effect(schema.PromptSubmit, same[schema.PromptSubmitInput]),
		kernel.Step(schema.PromptSubmit.End, kernel.End, nil),
		kernel.Step(schema.StepEnded, ended, d.applyEnded),
		kernel.Query(schema.StepList, d.list),
		kernel.Query(schema.StepGet, d.get),
		kernel.Query(schema.StepDiff, d.diff),
		kernel.Effect(schema.StepUndo, takeBack),
		kernel.Step(schema.StepUndo.End, kernel.End, nil),
		kernel.Effect(schema.StepRedact, redacted),
		kernel.Step(schema.StepRedact.End, kernel.End, nil),
		kernel.Effect(schema.ReviewApply, applied),
		kernel.Step(schema.ReviewApply.End, kernel.End, nil),
		kernel.Effect(schema.ReviewDiscard, discarded),
		kernel.Step(schema.ReviewDiscard.End, kernel.End, nil),
		kernel.Command(schema.StepSubscribe, d.subscribe, nil),
		kernel.Question(schema.StepWatch, d.watch),
	)
	d.Reset()
	d.Publish()
	return d
}

// Serve sets the shell, before the first call. Without one nothing is kept.
func (d *Domain) Serve(s Shell) { d.shell.Store(&s) }

// same leaves all to the runner.
func same[In any](_ *kernel.Call, in *In) (*In, error) { return in, nil }

// takeBack decides a Step.Undo.
func takeBack(call *kernel.Call, in *schema.StepUndoInput) (*Undo, error) {
	given := 0
	for _, one := range []*int64{in.Step, in.Since, in.LastMS} {
		if one != nil {
			given++
		}
	}
	switch {
	case given > 1:
		return nil, kernel.Invalid("step", "since and last_ms exclude each other")
	case in.Tree[0] != '/':
		return nil, kernel.Invalid("tree", "must be an absolute path")
	}
	return &Undo{in, call.Time}, nil
}

// redacted decides a Step.Redact.
func redacted(_ *kernel.Call, in *schema.StepRedactInput) (*schema.StepRedactInput, error) {
	if !path.IsAbs(in.Path) || path.Clean(in.Path) != in.Path {
		return nil, kernel.Invalid("path", "must be an absolute path without . and .. and trailing slashes")
	}
	return in, nil
}

// applied decides a Review.Apply.
func applied(_ *kernel.Call, in *schema.ReviewApplyInput) (*schema.ReviewApplyInput, error) {
	return in, absolute(in.Paths)
}

// discarded decides a Review.Discard.
func discarded(_ *kernel.Call, in *schema.ReviewDiscardInput) (*schema.ReviewDiscardInput, error) {
	return in, absolute(in.Paths)
}

func absolute(paths []string) error {
	for _, p := range paths {
		if !path.IsAbs(p) || path.Clean(p) != p {
			return kernel.Invalid("paths", "must hold absolute paths without . and .. and trailing slashes")
		}
	}
	return nil
}

func ended(*kernel.Call, *schema.StepState) (schema.SuccessOutput, error) {
	return schema.SuccessOutput{Success: true}, nil
}

// applyBegan keeps the number that a call was told, so that no other step gets it if this one is never recorded.
func (d *Domain) applyBegan(e *kernel.Entry, _ *schema.EffectEnd) {
	if out := kernel.Reply[schema.StepBeginOutput](e, schema.StepBegin.Output()); out.Step > 0 {
		d.number(out.Agent, out.Step)
	}
}

// number moves the number of a name's last step on.
func (d *Domain) number(agent string, step int64) {
	if last, _ := d.names.Get(agent); last < step {
		d.names.Set(agent, step)
		d.dirty = true
	}
}

func (d *Domain) applyEnded(_ *kernel.Entry, in *schema.StepState) {
	if d.again(in) {
		return
	}
	r := &Record{*in, d.last + 1}
	r.Files.Items, r.Programs.Items, r.Connections.Items = first(in.Files.Items), nil, nil
	d.put(r)
	d.number(r.Agent, r.Step)
	if d.records.Len() > MaxKept {
		d.records.PopMin()
	}
}

// again reports whether a step was recorded before. The shell records it again if the first answer came too late.
func (d *Domain) again(in *schema.StepState) (twice bool) {
	looked := 0
	d.records.Reverse(func(_ int64, r *Record) bool {
		looked++
		twice = r.Agent == in.Agent && r.Step == in.Step && r.Tree == in.Tree && r.Ended == in.Ended && slices.Equal(r.Cuts, in.Cuts)
		return !twice && looked < 64
	})
	return twice
}

// Bounds of the files that a record has, so that all records take little memory.
const (
	mostFiles   = 3
	longestPath = 128
)

// first returns the files that a list shows of a step: those in a .git only if there are no others, and no directory with which the same
// happened as with what follows in it.
func first(items []schema.StepFile) (kept []schema.StepFile) {
	for _, inGit := range []bool{false, true} {
		for i, f := range items {
			parent := i+1 < len(items) && items[i+1].What == f.What && strings.HasPrefix(items[i+1].Path, f.Path+"/")
			if !parent && len(kept) < mostFiles && len(f.Path) <= longestPath && strings.Contains("/"+f.Path+"/", "/.git/") == inGit {
				kept = append(kept, schema.StepFile{Path: strings.Clone(f.Path), What: f.What})
			}
		}
		if kept != nil {
			break
		}
	}
	return kept
}

func (d *Domain) put(r *Record) {
	d.last, d.dirty = r.Number, true
	d.records.Set(r.Number, r)
}

// Reset forgets all steps.
func (d *Domain) Reset() {
	d.records, d.names, d.last, d.dirty = new(btree.Map[int64, *Record]), new(btree.Map[string, int64]), 0, true
}

// Publish implements kernel.Publisher.
func (d *Domain) Publish() {
	if d.dirty {
		d.dirty = false
		d.view.Store(&View{d.records.Copy(), d.names.Copy()})
	}
}

// View returns the published state. It is safe for concurrent use.
func (d *Domain) View() *View { return d.view.Load() }

// saved is a record of a snapshot: a name with the number of its last step, or a step.
type saved struct {
	Name   string  `json:"name,omitzero"`
	Last   int64   `json:"last,omitzero" min:"0"`
	Record *Record `json:"record,omitzero"`
}

var records = kernel.RecordsOf[saved]()

// Snapshot implements kernel.Domain.
func (d *Domain) Snapshot() func(write func(chunk []byte) error) error {
	all, names := d.records.Copy(), d.names.Copy()
	return records.Writer(func(yield func(saved) bool) {
		more := true
		names.Scan(func(name string, last int64) bool {
			more = yield(saved{Name: name, Last: last})
			return more
		})
		if more {
			all.Scan(func(_ int64, r *Record) bool { return yield(saved{Record: r}) })
		}
	})
}

// Restore implements kernel.Domain.
func (d *Domain) Restore(chunk []byte) error {
	return records.Read(chunk, func(s *saved) error {
		if s.Record != nil {
			d.put(s.Record)
		} else {
			d.names.Set(s.Name, s.Last)
		}
		return nil
	})
}
