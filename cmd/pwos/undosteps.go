package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

// undoSteps takes back what steps of an agent changed.
type undoSteps struct {
	app     *app
	in      schema.StepUndoInput
	since   arg.Since
	last    time.Duration
	tree    string
	partial bool
}

// choose sets the steps that are taken back. Its errors are usage errors.
func (u *undoSteps) choose(of arg.Steps) (err error) {
	u.in.Agent, u.in.Partial = of.Agent, given(u.partial)
	chosen := 0
	if of.From != 0 {
		chosen, u.in.Step = chosen+1, &of.From
	}
	if of.From != of.To {
		return fmt.Errorf("undo takes one step, or those from one on: %s --since %s", quote.Line("pwos", "undo", of.Agent), quote.Word(view.StepName(of.Agent, of.From)))
	}
	if u.last != 0 {
		chosen, u.in.LastMS = chosen+1, new(max(1, u.last.Milliseconds()))
	}
	switch step := u.since.Step; {
	case step != nil && step.Agent != of.Agent:
		return fmt.Errorf("--since names a step of %s, and the steps of %s are to be taken back", quote.Word(step.Agent), quote.Word(of.Agent))
	case step != nil:
		chosen, u.in.Since = chosen+1, &step.From
	case u.since.Time != nil:
		chosen, u.in.LastMS = chosen+1, new(max(1, time.Since(*u.since.Time).Milliseconds()))
	}
	if chosen > 1 {
		return errors.New("a step, --since and --last exclude each other: give one of them")
	}
	if u.tree == "" {
		u.tree = "."
	}
	u.in.Tree, err = realPath(u.tree)
	return err
}

// run takes the steps back.
func (u *undoSteps) run(ctx context.Context, c *client.Client) error {
	act := planned[schema.StepUndoOutput]{
		app: u.app, table: view.UndoPlan, done: view.UndoneText, ask: "take back %s", nothing: "there is nothing to take back: the files are as they were before",
		partial: u.partial, rest: "takes back",
		of: func(out *schema.StepUndoOutput) plan { return plan{&out.Files, out.Conflicts, out.Plan} },
		call: func(ctx context.Context, c *client.Client, dryRun *bool, expect *string) (schema.StepUndoOutput, error) {
			ask := u.in
			ask.DryRun, ask.Expect = dryRun, expect
			out, err := cli.InvokeAs(ctx, c, schema.StepUndo, &ask)
			if errors.Is(err, fault.StepsNotFound) {
				err = u.elsewhere(ctx, c, err)
			}
			return out, err
		},
	}
	return act.run(ctx, c, u.in.DryRun != nil)
}

// elsewhere adds to an error that there are no such steps where there are some.
func (u *undoSteps) elsewhere(ctx context.Context, c *client.Client, err error) error {
	out, listErr := knownSteps(ctx, c, schema.StepListInput{Agent: &u.in.Agent})
	if listErr != nil {
		return listErr
	}
	var trees []string
	for i := range out.Steps {
		s := &out.Steps[i]
		if u.in.Step != nil && s.Step != *u.in.Step || slices.Contains(trees, s.Tree) {
			continue
		}
		if inside(u.in.Tree, s.Tree) {
			return err
		}
		trees = append(trees, s.Tree)
	}
	if len(trees) == 0 {
		return err
	}
	slices.Sort(trees)
	flags := make([]string, len(trees))
	for i, tree := range trees {
		flags[i] = "--tree " + quote.Word(tree)
	}
	return fault.StepsNotFound.New("%s has changed nothing in %s", view.Escaped(u.in.Agent), view.Escaped(u.in.Tree)).WithFix("it has elsewhere: %s", strings.Join(flags, ", "))
}
