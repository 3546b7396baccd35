package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

// tellUncovered says at a terminal, once an agent runs, why steps of its directory are not kept as they should be, if that is so.
func (a *app) tellUncovered(ctx context.Context, c *client.Client, j *job) error {
	if !a.StderrTerminal() || j.input.Cwd == nil {
		return nil
	}
	out, err := cli.InvokeAs(ctx, c, schema.StepList, &schema.StepListInput{Limit: new(int64(1))})
	if err = unlessUnkept(err); err != nil {
		return err
	}
	a.tellTrees(out.Trees, func(t *schema.StepTree) bool { return inside(*j.input.Cwd, t.Path) })
	return nil
}

// stepsSince returns the steps of an agent since it began. When it returns, they are complete.
func stepsSince(ctx context.Context, c *client.Client, d *schema.Descriptor, began int64) ([]schema.StepState, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, cli.UsualTimeout, cli.ErrTimeout)
	defer cancel()
	out, err := allSteps(ctx, c, schema.StepListInput{Agent: &d.AgentID, Since: &began, Limit: new(int64(cli.ListPage))})
	return out.Steps, unlessUnkept(err)
}

// tellSteps says at a terminal how to see and undo what an agent has changed in steps, if it has, and anywhere what of it was set aside.
func (a *app) tellSteps(j *job, d *schema.Descriptor, steps []schema.StepState) {
	a.tellAside(d, steps)
	if !a.StderrTerminal() {
		return
	}
	var files schema.StepFiles
	var marked []string
	var unlisted int64
	var markedIn string
	numbers, tree := make(map[int64]bool), ""
	for i := range steps {
		s := &steps[i]
		if s.PID != d.PID || s.Kind == schema.StepOfUndo || s.Files.Count() == 0 {
			continue
		}
		numbers[s.Step], tree = true, s.Tree
		if len(s.Files.Marked.Items) > 0 {
			markedIn = s.Tree
		}
		unlisted += s.Files.Marked.Count - int64(len(s.Files.Marked.Items))
		marked = append(marked, s.Files.Marked.Items...)
		files.Made, files.Changed, files.Removed = files.Made+s.Files.Made, files.Changed+s.Files.Changed, files.Removed+s.Files.Removed
	}
	if len(numbers) == 0 {
		return
	}
	if j.profile.Review {
		a.Say("%s changed files in its copy (%s): %s", view.Escaped(d.AgentID), view.FilesText(&files), nextForReview(d.AgentID))
		return
	}
	undo := []string{"pwos", "undo", d.AgentID}
	if here, err := realPath("."); err == nil && !inside(here, tree) {
		undo = append(undo, "--tree", tree)
	}
	a.Say("%s changed files in %s (%s): %s, %s", view.Escaped(d.AgentID), cli.Counted(int64(len(numbers)), "step"), view.FilesText(&files),
		quote.Line("pwos", "diff", d.AgentID), quote.Line(undo...))
	a.tellMarked(d, markedIn, marked, unlisted)
}

// tellMarked names what an agent has made or changed of what tools outside run or obey: these files, and so many more.
func (a *app) tellMarked(d *schema.Descriptor, tree string, files []string, more int64) {
	if len(files) == 0 {
		return
	}
	slices.Sort(files)
	files = slices.Compact(files) // several steps may have changed one
	a.Say("it changed what your tools run or obey: look before you build, commit or start an agent there, at %s: %s",
		view.MarkedText(&schema.StepItems{Count: int64(len(files)) + more, Items: files}), quote.Line("pwos", "diff", d.AgentID, filepath.Join(tree, files[0])))
}

// tellAside says what an agent has made of files that programs outside run, and how to answer for them.
func (a *app) tellAside(d *schema.Descriptor, steps []schema.StepState) {
	var first *schema.StepState
	var files []string
	count := 0
	for i := range steps {
		s := &steps[i]
		if s.PID != d.PID || s.Tool != schema.StepHeld {
			continue
		}
		if first == nil {
			first = s
		}
		count += int(s.Files.Count())
		for _, file := range s.Files.Items {
			files = append(files, file.Path)
		}
	}
	if first == nil {
		return
	}
	what := named(files[:min(len(files), mostNamed)])
	if more := count - min(len(files), mostNamed); more > 0 {
		what += fmt.Sprintf(" and %d more", more)
	}
	a.Say("set aside, since programs of yours run it as soon as they see it: %s; %s lists the questions, %s shows it",
		what, quote.Command("pwos", "approvals"), quote.Command("pwos", "diff", view.StepName(d.AgentID, first.Step)))
}

// unlessUnkept returns err, and nil if it is that a kernel keeps no steps, or tells this caller none.
func unlessUnkept(err error) error {
	if errors.Is(err, fault.KernelUnsupported) || errors.Is(err, fault.WireUnknownSyscall) || errors.Is(err, fault.Forbidden) {
		return nil
	}
	return err
}
