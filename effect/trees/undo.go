package trees

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/promptware-os/pwos/internal/clip"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/step"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/steps"
)

// Undo is the runner of Step.Undo.
func (t *Trees) Undo(ctx context.Context, job *kernel.Job, do *step.Undo) (out schema.StepUndoOutput, _ error) {
	if err := t.Settle(ctx, true); err != nil {
		return out, err
	}
	if r := t.reviewOf(do.Agent); r != nil && within(r.Project, do.Tree) && t.inCopy(do, r) {
		do.Tree = r.copy()
	}
	one, near, err := t.around(ctx, do.Tree)
	if err != nil {
		return out, err
	}
	defer func() { _ = t.record() }() // it logs what it cannot record, and the next one tries again
	defer one.release()
	for _, other := range near {
		defer other.release()
	}
	out.Agent, out.Tree = do.Agent, one.root
	list, err := t.undone(do, one.root)
	if err != nil {
		return out, err
	}
	defer t.freeze(append(near, one)...)()
	now := time.Now()
	one.cut(now, nil) // what changed until now is not the undo's
	for _, other := range near {
		other.cut(now, nil)
	}
	options := steps.UndoOptions{Before: steps.Label{Kind: steps.Outside}, Partial: do.Partial != nil && *do.Partial, DryRun: true}
	seqs, err := one.cutsOf(ctx, list)
	if errors.Is(err, steps.ErrNoStep) {
		return out, fault.StepsMissing.New("what the steps changed in %s is not kept any more", one.root)
	}
	if err != nil {
		return out, err
	}
	plan, err := one.store.Undo(ctx, seqs, options)
	if err != nil {
		return out, fmt.Errorf("plan undo: %w", err)
	}
	out.Steps, out.Shared = numbersOf(list), sharedOf(list)
	out.Files, out.Conflicts, out.Plan = report(plan)
	out.Steps, out.Shared = out.Steps[:min(len(out.Steps), schema.MaxStepItems)], out.Shared[:min(len(out.Shared), schema.MaxStepItems)]
	out.DryRun = do.DryRun != nil && *do.DryRun
	switch {
	case do.Expect != nil && *do.Expect != out.Plan:
		return out, fault.StepsOtherPlan.New("the files are not those of the plan any more: nothing was written")
	case !out.DryRun && !options.Partial:
		if err := blocked(plan); err != nil {
			return out, err
		}
	}
	if out.DryRun || len(plan.Changes) == 0 {
		return out, nil
	}
	about := one.about(do.Agent, list[len(list)-1].PID, schema.StepOfUndo, now)
	about.Step, about.Undoes, about.Cause = t.next(do.Agent), out.Steps, int64(job.Seq)
	options.DryRun = false
	if options.Label, err = labelled(about); err != nil {
		return out, err
	}
	done, err := one.store.Undo(ctx, seqs, options)
	for _, other := range near {
		other.skip()
	}
	if done != nil && done.Step != nil {
		one.finished(about, []*steps.Step{done.Step})
		out.Step = about.Step
		out.Files, out.Conflicts, out.Plan = report(done)
	} else {
		one.unused(about.Agent, about.Step)
	}
	if err != nil {
		return out, fmt.Errorf("undo: %w", err)
	}
	return out, nil
}

// skip makes what changed since the last cut nobody's.
func (one *tree) skip() {
	if _, err := one.store.Cut(context.Background(), steps.Label{Kind: steps.Outside, Except: one.copied}); err != nil {
		one.trouble = err
		one.log.Warn("what an undo changed is recorded with the next step", "tree", one.root, "error", err)
	}
}

// rootOf returns the tree that holds a path.
func (t *Trees) rootOf(path string) (root string, _ error) {
	entries, err := os.ReadDir(t.dir)
	if err != nil {
		return "", fmt.Errorf("look for the steps of %s: %w", path, err)
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(t.dir, entry.Name(), rootName))
		if err != nil {
			continue // the kernel was killed when it made the store
		}
		if at := string(text); within(at, path) && len(at) > len(root) {
			root = at
		}
	}
	if root == "" || t.Off {
		return "", fault.StepsNotFound.New("no steps are kept of a directory that holds %s", path)
	}
	return root, nil
}

// holding waits for the turn of the tree that holds a path. It is opened if no program works in it.
func (t *Trees) holding(ctx context.Context, path string) (*tree, error) {
	root, err := t.rootOf(path)
	if err != nil {
		return nil, err
	}
	return t.turnOf(ctx, root)
}

// turnOf waits for the turn of a tree, which is opened if no program works in it.
func (t *Trees) turnOf(ctx context.Context, root string) (*tree, error) {
	for {
		t.mu.Lock()
		one := t.open(root)
		t.mu.Unlock()
		switch err := one.take(ctx); {
		case err == nil:
			one.left = time.Now() // it stays open until it is used
			return one, nil
		case errors.Is(err, errClosed): // since it was opened
		case ctx.Err() != nil:
			return nil, fmt.Errorf("wait for the steps of %s: %w", root, err)
		default:
			return nil, fault.StepsNotKept.New("%s: %v", root, err)
		}
	}
}

// around is holding for a tree, and the open ones inside and around it.
func (t *Trees) around(ctx context.Context, path string) (one *tree, near []*tree, err error) {
	if one, err = t.holding(ctx, path); err != nil {
		return nil, nil, err
	}
	one.release() // turns are taken in the order of paths: there may be an undo in one of the others
	t.mu.Lock()
	all := slices.DeleteFunc(t.all(), func(other *tree) bool {
		return other != one && (!other.ready() || !within(one.root, other.root) && !within(other.root, one.root))
	})
	t.mu.Unlock()
	err = errClosed // if the kernel ends meanwhile
	for _, other := range all {
		taken := other.take(ctx)
		switch {
		case other == one:
			err = taken
		case taken == nil:
			near = append(near, other)
		}
	}
	if err == nil {
		return one, near, nil
	}
	for _, other := range near {
		other.release()
	}
	return nil, nil, fault.StepsNotKept.New("%s: %v", one.root, err)
}

// within reports whether a path is a directory, or is in it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// undone returns the records that an undo is about.
func (t *Trees) undone(do *step.Undo, root string) ([]*step.Record, error) {
	list := slices.DeleteFunc(t.view().Of(do.Agent), func(r *step.Record) bool { return r.Tree != root })
	switch {
	case do.Step != nil:
		list = step.Chosen(list, do.Step, nil)
	case do.Since != nil:
		list = slices.DeleteFunc(list, func(r *step.Record) bool { return r.Step < *do.Since })
	case do.LastMS != nil:
		list = slices.DeleteFunc(list, func(r *step.Record) bool { return r.Ended < do.Time-*do.LastMS })
	default:
		list = step.Latest(list)
	}
	if do.Step == nil { // what may be a person's is taken back by its number only
		list = slices.DeleteFunc(list, func(r *step.Record) bool { return r.Kind == schema.StepBackground && slices.Contains(r.With, outside) })
	}
	if len(list) == 0 {
		return nil, fault.StepsNotFound.New("%q has no such step in %s", do.Agent, root).WithFix(`"pwos steps" lists them`)
	}
	return list, nil
}

func numbersOf(list []*step.Record) (numbers []int64) {
	for _, r := range list {
		numbers = append(numbers, r.Step)
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// sharedOf returns with whom steps share their changes, except for each other.
func sharedOf(list []*step.Record) (others []string) {
	own := make(map[string]bool)
	for _, r := range list {
		own[fmt.Sprintf("%s:%d", r.Agent, r.Step)] = true
	}
	for _, r := range list {
		for _, other := range r.With {
			if !own[other] && !slices.Contains(others, other) {
				others = append(others, other)
			}
		}
	}
	return others
}

// report returns what is told of an undo. What does not fit is left out, and counted.
func report(u *steps.Undone) (files schema.StepFiles, conflicts []schema.StepConflict, plan string) {
	sum, size := sha256.New(), 0
	for _, c := range u.Changes {
		fmt.Fprintf(sum, "%q %v %v\n", c.Path, c.Before, c.After)
		if size += len(c.Path) + 40; size > recordSize/2 {
			c.Path = ""
		}
		count(&files, &c)
	}
	files.Items = slices.DeleteFunc(files.Items, func(f schema.StepFile) bool { return f.Path == "" })
	size = 0
	for _, c := range u.Conflicts {
		fmt.Fprintf(sum, "%q %q\n", c.Path, c.Why)
		if size += len(c.Path) + len(c.Why) + 40; size < recordSize/2 && len(conflicts) < schema.MaxStepItems {
			conflicts = append(conflicts, schema.StepConflict{Path: clip.Text(text(c.Path), longestPath), Why: clip.Text(c.Why, 512), Aside: c.Aside})
		}
	}
	return files, conflicts, hex.EncodeToString(sum.Sum(nil)[:16])
}

// blocked returns why nothing is written; nil: it is.
func blocked(plan *steps.Undone) error {
	var paths []string
	missing := false
	for _, c := range plan.Conflicts {
		if c.Aside {
			continue
		}
		missing = missing || c.Missing
		paths = append(paths, fmt.Sprintf("%s: %s", text(c.Path), c.Why))
	}
	if paths == nil {
		return nil
	}
	list := strings.Join(paths[:min(len(paths), 5)], "; ")
	if more := len(paths) - 5; more > 0 {
		list += fmt.Sprintf("; and %d more", more)
	}
	if missing {
		return fault.StepsMissing.New("nothing was written: %s", list)
	}
	return fault.StepsConflict.New("nothing was written: %s", list)
}
