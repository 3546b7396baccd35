package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

// planned is what undo, apply and discard do: at a terminal they show what would be done first, and ask.
type planned[Out any] struct {
	app     *app
	call    func(ctx context.Context, c *client.Client, dryRun *bool, expect *string) (Out, error)
	of      func(*Out) plan
	table   func(*Out, view.Paint) *view.Table
	done    func(*Out) string
	ask     string // the question, about so many changes
	nothing string // what is said if nothing would be changed
	ends    bool   // it is done even then: it ends something else
	partial bool   // conflicts hold back nothing
	rest    string // what --partial does with the rest
}

// plan is what the answers have in common.
type plan struct {
	files     *schema.StepFiles
	conflicts []schema.StepConflict
	digest    string // "": the answer is none
}

func (p *planned[Out]) run(ctx context.Context, c *client.Client, dryRun bool) error {
	a := p.app
	if a.WantsJSON() || !a.StdinTerminal() {
		return p.print(ctx, c, dryRun)
	}
	out, err := p.dry(ctx, c)
	shown := p.of(&out)
	if err != nil && shown.digest == "" {
		return err
	}
	if printErr := a.PrintTable(p.table(&out, a.Style)); printErr != nil || err != nil {
		return errors.Join(err, printErr)
	}
	count := shown.files.Count()
	if count == 0 {
		a.Say("%s", p.nothing)
	}
	if dryRun || count == 0 && !p.ends {
		return nil
	}
	if count > 0 {
		word, err := cli.AskWord(ctx, fmt.Sprintf("pwos: "+p.ask+"? [y/N] ", cli.Counted(count, "change")))
		if err != nil {
			return err
		}
		if word = strings.ToLower(strings.TrimSpace(word)); word != "y" && word != "yes" {
			a.Say("nothing was written")
			return cli.ExitStatus(fault.ExitError)
		}
	}
	if out, err = p.call(ctx, c, nil, &shown.digest); err != nil {
		return err
	}
	return a.PrintText(p.done(&out))
}

// print does it at once, and prints the answer as JSON: with conflicts, that of a dry run, which lists them.
func (p *planned[Out]) print(ctx context.Context, c *client.Client, dryRun bool) error {
	var out Out
	var err error
	if dryRun {
		out, err = p.dry(ctx, c)
	} else if out, err = p.call(ctx, c, nil, nil); errors.Is(err, fault.StepsConflict) || errors.Is(err, fault.StepsMissing) {
		var dryErr error
		out, dryErr = p.call(ctx, c, new(true), nil)
		err = errors.Join(err, dryErr)
	}
	if err != nil && p.of(&out).digest == "" {
		return err
	}
	line, jsonErr := schema.Marshal(&out)
	if jsonErr != nil {
		return jsonErr
	}
	return errors.Join(p.app.PrintLine(line), err)
}

// dry makes a dry run. Conflicts that hold back the rest are an error beside its answer.
func (p *planned[Out]) dry(ctx context.Context, c *client.Client) (Out, error) {
	out, err := p.call(ctx, c, new(true), nil)
	if err == nil && !p.partial && slices.ContainsFunc(p.of(&out).conflicts, func(c schema.StepConflict) bool { return !c.Aside }) {
		err = fault.StepsConflict.New("there are conflicts, and nothing is written").WithFix("--partial %s the rest", p.rest)
	}
	return out, err
}

// reviewPlan returns what an answer of apply and discard has of a plan.
func reviewPlan(out *schema.ReviewOutput) plan { return plan{&out.Files, out.Conflicts, out.Plan} }
