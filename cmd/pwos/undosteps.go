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

// run shows what would be done and asks, at a terminal, and does it.
func (u *undoSteps) run(ctx context.Context, c *client.Client) error {
	a := u.app
	if a.WantsJSON() || !a.StdinTerminal() {
		out, err := u.call(ctx, c)
		if err != nil && out.Plan == "" {
			return err
		}
		line, jsonErr := schema.Marshal(&out)
		if jsonErr != nil {
			return jsonErr
		}
		return errors.Join(a.PrintLine(line), err)
	}
	dryRun := u.in.DryRun
	u.in.DryRun = new(true)
	plan, err := u.call(ctx, c)
	if err != nil && plan.Plan == "" {
		return err
	}
	if printErr := a.PrintTable(view.UndoPlan(&plan, a.Style)); printErr != nil || err != nil {
		return errors.Join(err, printErr)
	}
	if plan.Files.Count() == 0 {
		a.Say("there is nothing to take back: the files are as they were before")
		return nil
	}
	if dryRun != nil {
		return nil
	}
	word, err := cli.AskWord(ctx, fmt.Sprintf("pwos: take back %s? [y/N] ", cli.Counted(plan.Files.Count(), "change")))
	if err != nil {
		return err
	}
	if word = strings.ToLower(strings.TrimSpace(word)); word != "y" && word != "yes" {
		a.Say("nothing was written")
		return cli.ExitStatus(fault.ExitError)
	}
	u.in.DryRun, u.in.Expect = nil, &plan.Plan
	out, err := u.call(ctx, c)
	if err != nil {
		return err
	}
	return a.PrintText(view.UndoneText(&out))
}

// call makes the call. With conflicts, without --partial, it returns steps.conflict and what a dry run says.
func (u *undoSteps) call(ctx context.Context, c *client.Client) (schema.StepUndoOutput, error) {
	out, err := cli.InvokeAs(ctx, c, schema.StepUndo, &u.in)
	if (errors.Is(err, fault.StepsConflict) || errors.Is(err, fault.StepsMissing)) && u.in.DryRun == nil {
		dry := u.in
		dry.DryRun, dry.Expect = new(true), nil
		shown, dryErr := cli.InvokeAs(ctx, c, schema.StepUndo, &dry)
		return shown, errors.Join(err, dryErr)
	}
	switch {
	case errors.Is(err, fault.StepsNotFound):
		return out, u.elsewhere(ctx, c, err)
	case err == nil && out.DryRun && !u.partial && slices.ContainsFunc(out.Conflicts, func(c schema.StepConflict) bool { return !c.Aside }):
		err = fault.StepsConflict.New("there are conflicts, and nothing is written").WithFix("--partial takes back the rest")
	}
	return out, err
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
