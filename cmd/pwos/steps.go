package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

func newSteps(a *app) *cobra.Command {
	in := new(schema.StepListInput)
	var follow bool
	cmd := &cobra.Command{
		Use:   "steps [NAME|STEP]",
		Short: "list what the tool calls of agents changed, or show one whole",
		Long: `steps lists the steps of agents, oldest first, or those of one agent. A step is one tool
call of a host such as Claude Code, or a period of activity of another program; claude:12 is
the 12th of claude, over all its runs. FILES says how many were made (+), changed (~) and
removed (-). WHAT begins with what is special about it:

  undone      a later undo has taken it back; that one is a step too, "of" what it took back
  failed      so says the host; "cut short": the kernel ended before the tool did
  shared      others were active in the directory at that time: what is whose is not known
  not kept    so many files are not kept, such as a very large one, and cannot be restored

The tool is "background" for what an agent's processes changed between its tool calls.
steps claude:12 shows one whole: when, why, and what it did to which file.

If stdout is no terminal, each step is a line of JSON, of each directory that it changed.
Directories whose steps are not kept are named on stderr at a terminal, with the reason.

Exit status: 3 denied, 4 no such agent or step.`,
		Example: `  pwos steps
  pwos steps claude --since 1h
  pwos steps claude -f
  pwos steps claude:12`,
		Args:              cli.Arguments(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completeSteps(a, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			of := arg.Steps{}
			if len(args) == 1 {
				var err error
				if of, err = arg.ParseSteps(args[0]); err != nil {
					return cli.Usage(cmd, err)
				}
				in.Agent = &of.Agent
			}
			switch flag := cli.Given(cmd, "since", "last", "follow"); {
			case of.From == 0 && follow:
				return a.followSteps(cmd.Context(), in)
			case of.From == 0:
				return a.WithKernel(cmd.Context(), cli.UsualTimeout, func(ctx context.Context, c *client.Client) error { return a.listSteps(ctx, c, in) })
			case flag != "":
				return cli.Usage(cmd, errors.New("--"+flag+" goes with an agent, not with a step of one"))
			case of.From != of.To:
				return cli.Usage(cmd, errors.New("give one step, as "+view.StepName(of.Agent, of.From)+`; "pwos diff" shows several together`))
			}
			return a.WithKernel(cmd.Context(), cli.UsualTimeout, func(ctx context.Context, c *client.Client) error {
				return a.showStep(ctx, c, &schema.StepGetInput{Agent: of.Agent, Step: of.From})
			})
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with each step as it ends, until interrupted")
	cmd.Flags().Var(cli.TimeFlag(&in.Since), "since", "only steps that ended after this time, such as 2h ago, yesterday or 08:00")
	cli.MemberFlag(cmd, in, "limit", "last", "print only this many of the last steps (default 100)")
	return cmd
}

// stepKey names what a step did in one directory.
type stepKey struct {
	agent, tree string
	step        int64
}

func keyOfStep(s *schema.StepState) stepKey { return stepKey{s.Agent, s.Tree, s.Step} }

// allSteps asks for the steps that in selects, from the last one backwards, as an answer has few of them.
func allSteps(ctx context.Context, c *client.Client, in schema.StepListInput) (all schema.StepListOutput, err error) {
	left, seen := int(cmp.Or(view.Deref(in.Limit), 100)), make(map[stepKey]bool)
	for more := true; more && left > 0; {
		out, err := cli.InvokeAs(ctx, c, schema.StepList, &in)
		if err != nil {
			return all, err
		}
		next := slices.DeleteFunc(out.Steps, func(s schema.StepState) bool { return seen[keyOfStep(&s)] }) // of the same millisecond
		next = next[max(0, len(next)-left):]
		for i := range next {
			seen[keyOfStep(&next[i])] = true
		}
		left -= len(next)
		more = out.More && len(next) > 0
		all.Steps, all.Trees = append(next, all.Steps...), out.Trees
		if more {
			in.Until = &next[0].Ended
		}
	}
	return all, nil
}

// knownSteps is allSteps for an agent that must exist.
func knownSteps(ctx context.Context, c *client.Client, in schema.StepListInput) (schema.StepListOutput, error) {
	all, err := allSteps(ctx, c, in)
	if err == nil && len(all.Steps) == 0 && in.Agent != nil {
		err = isAgent(ctx, c, *in.Agent)
	}
	return all, err
}

func (a *app) listSteps(ctx context.Context, c *client.Client, in *schema.StepListInput) error {
	out, err := knownSteps(ctx, c, *in)
	if err != nil {
		return err
	}
	if a.StderrTerminal() {
		a.tellTrees(out.Trees, func(t *schema.StepTree) bool { return in.Agent == nil || slices.Contains(t.Agents, *in.Agent) })
	}
	if a.WantsJSON() {
		return cli.PrintEach(a.App, out.Steps)
	}
	if len(out.Steps) == 0 {
		a.Say("no steps are recorded: one is when an agent has changed files")
	}
	return a.Print(view.StepTable(view.Undone(out.Steps), time.Now(), a.Width(), a.Style).Text())
}

// tellTrees says which of the directories that are asked for are not kept as they should be, and why.
func (a *app) tellTrees(trees []schema.StepTree, about func(*schema.StepTree) bool) {
	for i := range trees {
		t := &trees[i]
		switch {
		case t.Why == nil || !about(t):
		case t.Files == 0:
			a.Say("what changes in %s cannot be undone: %s", view.Escaped(t.Path), view.Escaped(*t.Why))
		default:
			a.Say("%s: %s", view.Escaped(t.Path), view.Escaped(*t.Why))
		}
	}
}

// isAgent returns an error if no agent has the name, and no steps are of one that had it.
func isAgent(ctx context.Context, c *client.Client, name string) error {
	out, err := cli.InvokeAs(ctx, c, schema.StepList, &schema.StepListInput{})
	if err != nil {
		return err
	}
	names, err := allNames(ctx, c)
	if err != nil {
		return err
	}
	all := make(map[string]bool)
	for i := range out.Steps {
		all[out.Steps[i].Agent] = true
	}
	for _, one := range names {
		all[one] = true
	}
	if all[name] {
		return nil
	}
	like := schema.Nearest(name, func(yield func(string) bool) {
		for one := range all {
			if !yield(one) {
				return
			}
		}
	})
	if like != "" {
		return fault.ProcessNotFound.New("no agent has the name %q; did you mean %s?", name, quote.Word(like))
	}
	return fault.ProcessNotFound.New("no agent has the name %q", name).WithFix(`"pwos steps" lists the steps of all, "pwos ps --all" the agents`)
}

// showStep prints a step whole.
func (a *app) showStep(ctx context.Context, c *client.Client, in *schema.StepGetInput) error {
	out, err := cli.InvokeAs(ctx, c, schema.StepGet, in)
	switch {
	case errors.Is(err, fault.StepsNotFound):
		return cmp.Or(isAgent(ctx, c, in.Agent), err)
	case err != nil:
		return err
	case a.WantsJSON():
		return cli.PrintEach(a.App, out.Records)
	}
	later, err := allSteps(ctx, c, schema.StepListInput{Agent: &in.Agent, Since: &out.Records[0].Ended, Limit: new(int64(cli.ListPage))})
	if err != nil {
		return err
	}
	undos := slices.DeleteFunc(later.Steps, func(s schema.StepState) bool { return s.Step <= in.Step })
	steps := view.Undone(append(out.Records, undos...))
	return a.PrintTable(view.WholeStep(steps[:len(out.Records)], out.Prompt, a.Style))
}

// followSteps prints the steps that in selects, then each as it is recorded.
func (a *app) followSteps(ctx context.Context, in *schema.StepListInput) error {
	data, err := schema.StepSubscribe.Encode(&schema.StepSubscribeInput{Agent: in.Agent})
	if err != nil {
		return err
	}
	listed := make(map[stepKey]bool)
	feed := cli.NewFeed(a.App, cli.Col("step", 12), cli.Col("time", 8), cli.Col("tool", 10), cli.Col("files", 10), cli.Col("what", 0))
	write := func(s *view.Step) error {
		raw, err := schema.Marshal(&s.StepState)
		if err != nil {
			return err
		}
		return feed.Write(raw, s.Cells(s.Row(time.Now(), in.Agent == nil), max(0, a.Width()-48), a.Style)...)
	}
	first := func(schema.Message) error { // on another connection: events wait on this one
		return a.WithKernel(ctx, cli.UsualTimeout, func(ctx context.Context, c *client.Client) error {
			out, err := knownSteps(ctx, c, *in)
			if err != nil {
				return err
			}
			for _, s := range view.Undone(out.Steps) {
				listed[keyOfStep(&s.StepState)] = true
				if err := write(&s); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return a.WithKernel(ctx, 0, func(ctx context.Context, c *client.Client) error {
		m := schema.Message{Kind: schema.KindCommand, Type: schema.StepSubscribe.Row().Type, Data: data, Meta: schema.Metadata{ID: schema.NewStamper().NewID()}}
		return c.SubscribeTo(ctx, m, first, func(event schema.Message) error {
			s, err := view.AnswerAs[schema.StepState](event.Type, event.Data)
			if err != nil || listed[keyOfStep(&s)] {
				return err
			}
			return write(&view.Step{StepState: s})
		})
	})
}
