package trees

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/step"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/steps"
)

// waiting is a review with its copy taken, whose programs are stopped.
type waiting struct {
	*review
	copied  *tree
	project *tree   // nil: it is not taken
	near    []*tree // inside and around that
	release func()
}

// taken returns the trees that are taken.
func (w *waiting) taken() []*tree {
	list := []*tree{w.copied}
	if w.project != nil {
		list = append(append(list, w.project), w.near...)
	}
	return list
}

// waiting takes the copy of an agent, and what it is a copy of if that is to be written. No review begins or ends until it is released.
func (t *Trees) waiting(ctx context.Context, agent string, write bool) (w waiting, err error) {
	t.making.Lock()
	w.review = t.reviewOf(agent)
	if w.review == nil {
		t.making.Unlock()
		return w, fault.StepsNotFound.New("no copy that %q worked on waits", agent).WithFix(`"pwos status" lists those that do; "pwos run --review" makes one`)
	}
	if w.copied, err = t.turnOf(ctx, w.copy()); err != nil {
		t.making.Unlock()
		return w, err
	}
	if write { // after its copy
		if w.project, err = t.turnOf(ctx, w.Project); err == nil { // its store may have been forgotten
			w.project.release()
			w.project, w.near, err = t.around(ctx, w.Project)
		}
		if err != nil {
			w.copied.release()
			t.making.Unlock()
			return w, err
		}
		w.copied.original = w.project
	}
	taken := w.taken()
	thaw := t.freeze(taken...)
	w.release = func() {
		thaw()
		w.copied.original = nil
		for _, one := range taken {
			one.release()
		}
		t.making.Unlock()
	}
	w.copied.cut(time.Now(), nil)
	if err := w.copied.trouble; err != nil {
		w.release()
		return w, fmt.Errorf("read %s: %w", w.copy(), err)
	}
	return w, nil
}

// freeze stops the programs that may work in trees, until the function that it returns is called, if they are not stopped for these already.
// It is in the order of their numbers, since calls about other trees stop them too. The trees' turns are held.
func (t *Trees) freeze(in ...*tree) (thaw func()) {
	in = slices.DeleteFunc(slices.Clone(in), func(one *tree) bool { return one.frozen })
	pids := make(map[int64]*program)
	for _, one := range in {
		one.frozen = true
		maps.Copy(pids, t.affected(one))
	}
	var all []func()
	for _, pid := range slices.Sorted(maps.Keys(pids)) {
		all = append(all, t.agents.Freeze(pid))
	}
	return func() {
		for _, one := range slices.Backward(all) {
			one()
		}
		for _, one := range in {
			one.frozen = false
		}
	}
}

// below returns paths of the project as those of its tree.
func (w *waiting) below(paths []string) (list []string, _ error) {
	for _, path := range paths {
		rel, err := filepath.Rel(w.Project, path)
		if err != nil || !filepath.IsLocal(rel) {
			return nil, fault.WireInvalidInput.New("Invalid input: %s is not in %s, which %q works on a copy of", path, w.Project, w.Agent).WithFix("name paths in it")
		}
		if rel == "." {
			rel = ""
		}
		list = append(list, rel)
	}
	return list, nil
}

// Apply is the runner of Review.Apply.
func (t *Trees) Apply(ctx context.Context, job *kernel.Job, do *schema.ReviewApplyInput) (out schema.ReviewOutput, _ error) {
	defer func() { _ = t.record() }() // it logs what it cannot record, and the next one tries again
	w, err := t.waiting(ctx, do.Agent, true)
	if err != nil {
		return out, err
	}
	defer w.release()
	project := w.project
	for _, one := range w.taken()[1:] {
		one.cut(time.Now(), nil) // what changed until now is not the copy's
	}
	a := act{job: job, in: project, kind: schema.StepOfApply, partial: said(do.Partial), dryRun: said(do.DryRun), expect: do.Expect}
	a.do = func(paths []string, options steps.UndoOptions) (*steps.Undone, error) {
		done, err := project.store.Apply(ctx, w.copied.store, paths, options)
		for _, other := range w.near {
			if !options.DryRun {
				other.skip()
			}
		}
		return done, err
	}
	plan, err := t.act(&w, do.Paths, &a, &out)
	if err != nil || a.dryRun {
		return out, err
	}
	left, err := w.copied.store.Unapplied(ctx, nil)
	if err != nil {
		return out, fmt.Errorf("look what is left: %w", err)
	}
	whole := do.Paths == nil && !slices.ContainsFunc(plan.Conflicts, func(c steps.Conflict) bool { return !c.Aside })
	return out, t.conclude(&w, len(left) == 0 || whole, &out)
}

// Discard is the runner of Review.Discard.
func (t *Trees) Discard(ctx context.Context, job *kernel.Job, do *schema.ReviewDiscardInput) (out schema.ReviewOutput, _ error) {
	defer func() { _ = t.record() }() // it logs what it cannot record, and the next one tries again
	w, err := t.waiting(ctx, do.Agent, false)
	if err != nil {
		return out, err
	}
	defer w.release()
	a := act{job: job, in: w.copied, kind: schema.StepOfUndo, partial: true, dryRun: said(do.DryRun), expect: do.Expect}
	a.do = func(paths []string, options steps.UndoOptions) (*steps.Undone, error) {
		return w.copied.store.Drop(ctx, paths, options)
	}
	if do.Paths != nil {
		_, err := t.act(&w, do.Paths, &a, &out)
		return out, err
	}
	a.dryRun = true // nothing has to be restored in what is removed
	if _, err := t.act(&w, nil, &a, &out); err != nil || said(do.DryRun) {
		return out, err
	}
	if out.DryRun = false; t.runs(w.review) {
		return out, fault.StepsConflict.New("%q still works on the copy: nothing was dropped", do.Agent).WithFix(`end it with "pwos kill", or name the paths that are to be as they were`)
	}
	return out, t.conclude(&w, true, &out)
}

func said(b *bool) bool { return b != nil && *b }

func (t *Trees) runs(r *review) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.runsIn(r)
}

// conclude ends a review that is done with, unless a program works in it.
func (t *Trees) conclude(w *waiting, done bool, out *schema.ReviewOutput) error {
	if !done || t.runs(w.review) {
		return nil
	}
	out.Ended = true
	if err := t.remove(w.review, w.copied); err != nil {
		return fmt.Errorf("remove copy: %w", err)
	}
	return nil
}

// act is what is done with the changes of a copy.
type act struct {
	job             *kernel.Job
	in              *tree // in which it is a step
	kind            string
	partial, dryRun bool
	expect          *string
	do              func(paths []string, options steps.UndoOptions) (*steps.Undone, error)
}

// act plans, and does it if that is asked for and nothing conflicts. It returns what was done, or the plan.
func (t *Trees) act(w *waiting, paths []string, a *act, out *schema.ReviewOutput) (*steps.Undone, error) {
	out.Agent, out.Tree, out.DryRun = w.Agent, w.Project, a.dryRun
	below, err := w.below(paths)
	if err != nil {
		return nil, err
	}
	options := steps.UndoOptions{Before: steps.Label{Kind: steps.Outside}, Partial: a.partial, DryRun: true}
	plan, err := a.do(below, options)
	if errors.Is(err, steps.ErrNoChange) {
		return nil, fault.StepsNotFound.New("%q has changed no such path in its copy of %s: %v", w.Agent, w.Project, err).WithFix(`"pwos diff" shows what it has changed`)
	}
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	out.Files, out.Conflicts, out.Plan = report(plan)
	switch {
	case a.expect != nil && *a.expect != out.Plan:
		return nil, fault.StepsOtherPlan.New("the files are not those of the plan any more: nothing was written")
	case a.dryRun:
		return plan, nil
	case !a.partial:
		if err := blocked(plan); err != nil {
			return nil, err
		}
	}
	pid := int64(0)
	if list := t.view().Of(w.Agent); len(list) > 0 {
		pid = list[len(list)-1].PID
	}
	about := a.in.about(w.Agent, pid, a.kind, time.Now())
	about.Step, about.Cause = t.next(w.Agent), int64(a.job.Seq)
	options.DryRun = false
	if options.Label, err = labelled(about); err != nil {
		return nil, err
	}
	done, err := a.do(below, options)
	if done != nil && done.Step != nil {
		a.in.finished(about, []*steps.Step{done.Step})
		out.Step = about.Step
		out.Files, out.Conflicts, out.Plan = report(done)
	} else {
		t.unused(w.Agent, about.Step)
	}
	if err != nil {
		return nil, fmt.Errorf("write: %w", err)
	}
	return done, nil
}

// inCopy reports whether the last of the steps that an undo is about was made in the copy, not in the project itself.
func (t *Trees) inCopy(do *step.Undo, r *review) bool {
	last := func(root string) int64 {
		list, err := t.undone(do, root)
		if err != nil {
			return 0
		}
		return list[len(list)-1].Number
	}
	return last(r.copy()) > last(r.Project)
}

// reviewText returns the text of what is changed in a copy and was not applied.
func (t *Trees) reviewText(ctx context.Context, do *step.Diff) ([]byte, error) {
	w, err := t.waiting(ctx, do.Review, false)
	if err != nil {
		return nil, err
	}
	defer w.release()
	var paths []string
	if do.Path != "" && within(w.Project, do.Path) && do.Path != w.Project {
		paths = []string{do.Path}
	}
	below, err := w.below(paths)
	if err != nil {
		return nil, err
	}
	changes, err := w.copied.store.Unapplied(ctx, below)
	if errors.Is(err, steps.ErrNoChange) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	limited := &limit{&out, longestDiff}
	if paths != nil {
		err = w.copied.store.Diff(ctx, limited, changes)
	} else {
		err = withoutGit(ctx, w.copied.store, limited, changes)
	}
	return out.Bytes(), tooLong(err)
}
