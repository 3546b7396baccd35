package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

func newApprovals(a *app) *cobra.Command {
	var follow, all bool
	cmd := &cobra.Command{
		Use:   "approvals",
		Short: "list the calls that wait for approval",
		Long: `approvals lists the questions that policy rules with @ask have raised: who wants to make
which call, under which rule, and how much time is left to answer. --all also lists
the answered questions that the kernel still remembers. -f lists the open questions, then
prints each new question and each answer until interrupted.`,
		Example: `  pwos approvals
  pwos approvals -f
  pwos approvals --json | jq -c '.data'`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if follow {
				if all {
					return cli.Usage(cmd, errors.New("--all and --follow exclude each other: give one of them"))
				}
				return a.followApprovals(cmd.Context())
			}
			return a.WithKernel(cmd.Context(), cli.UsualTimeout, func(ctx context.Context, c *client.Client) error {
				return a.listApprovals(ctx, c, all)
			})
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "print new questions and answers as they arrive")
	cmd.Flags().BoolVar(&all, "all", false, "also list questions that were answered or have expired")
	return cmd
}

// approvalsOf returns the waiting questions, or all if all is set. It reads every page.
func approvalsOf(ctx context.Context, c *client.Client, all bool) (list []schema.ApprovalState, err error) {
	var in schema.ApprovalListInput
	if waiting := schema.ApprovalWaiting; !all {
		in.State = &waiting
	}
	for {
		out, err := cli.InvokeAs(ctx, c, schema.ApprovalList, &in)
		if err != nil {
			return nil, err
		}
		list = append(list, out.Approvals...)
		if out.More == 0 || len(out.Approvals) == 0 {
			return list, nil
		}
		in.After = &list[len(list)-1].ID
	}
}

func (a *app) listApprovals(ctx context.Context, c *client.Client, all bool) error {
	list, err := approvalsOf(ctx, c, all)
	if err != nil {
		return err
	}
	if a.WantsJSON() {
		return cli.PrintEach(a.App, list)
	}
	t, next := new(view.Table), ""
	t.Header("id", "state", "agent", "rule", "left", "call")
	now := time.Now()
	for i := range list {
		s := &list[i]
		t.Row(view.ApprovalCells(s, now)...)
		if s.State == schema.ApprovalWaiting && next == "" {
			next = s.ID
		}
	}
	switch {
	case next != "":
		a.Say("allow it once with %s, for an hour with %s; refuse it with %s", quote.Command("pwos", "approve", next), quote.Command("pwos", "approve", next, "--for", "1h"),
			quote.Command("pwos", "refuse", next, "--why", "WHY"))
	case len(list) == 0:
		a.Say("no call waits for approval")
	}
	return a.PrintTable(t)
}

// followApprovals prints the waiting questions, then each new question and each answer, until ctx ends.
func (a *app) followApprovals(ctx context.Context) error {
	f := cli.NewFeed(a.App, cli.Col("id", 6), cli.Col("state", 8), cli.Col("agent", 20), cli.Col("rule", 16), cli.Col("left", 8), cli.Col("call", 0))
	return cli.Subscribe(ctx, a.App, schema.ApprovalSubscribe, new(schema.ApprovalSubscribeInput), func(_ string, event schema.Message, s schema.ApprovalState) error {
		return f.Write(event.Data, view.ApprovalCells(&s, time.Now())...)
	})
}

func newApprove(a *app) *cobra.Command {
	in := &schema.ApprovalDecideInput{Decision: schema.Approve}
	var span time.Duration
	cmd := &cobra.Command{
		Use:   "approve QUESTION",
		Short: "approve a call that waits",
		Long: `approve answers a question of "pwos approvals": the agent may make exactly that call,
once before the question expires, or with --for any number of times in that period. A
call with other data raises another question.

Exit status: 4 no such question, 8 it was already answered or has expired.`,
		Example: `  pwos approve q-17
  pwos approve q-17 --for 1h`,
		Args: cli.Arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if in.ID, err = arg.ParseQuestion(args[0]); err != nil {
				return cli.Usage(cmd, err)
			}
			if cmd.Flags().Changed("for") {
				seconds := int64(span / time.Second)
				if seconds < 1 {
					return cli.Usage(cmd, errors.New("--for must be at least 1s"))
				}
				in.ForSeconds = &seconds
			}
			return a.decide(cmd.Context(), in)
		},
	}
	cmd.Flags().Var((*cli.SpanFlag)(&span), "for", "allow the same call for this long, such as 1h (default: once)")
	cli.MemberFlag(cmd, in, "why", "why", "the reason, for the record")
	return cmd
}

func newRefuse(a *app) *cobra.Command {
	in := &schema.ApprovalDecideInput{Decision: schema.Refuse}
	cmd := &cobra.Command{
		Use:   "refuse QUESTION",
		Short: "refuse a call that waits",
		Long: `refuse answers a question of "pwos approvals": the call is refused, and the same call is
refused without another question until this one expires. The agent is told the reason.

Exit status: 4 no such question, 8 it was already answered or has expired.`,
		Example: `  pwos refuse q-17
  pwos refuse q-17 --why 'not in production'`,
		Args: cli.Arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if in.ID, err = arg.ParseQuestion(args[0]); err != nil {
				return cli.Usage(cmd, err)
			}
			return a.decide(cmd.Context(), in)
		},
	}
	cli.MemberFlag(cmd, in, "why", "why", "the reason, which the agent is told")
	return cmd
}

// decide answers a question and prints its new state.
func (a *app) decide(ctx context.Context, in *schema.ApprovalDecideInput) error {
	return a.WithKernel(ctx, cli.UsualTimeout, func(ctx context.Context, c *client.Client) error {
		s, err := cli.InvokeAs(ctx, c, schema.ApprovalDecide, in)
		if err != nil {
			return err
		}
		if a.WantsJSON() {
			return cli.PrintEach(a.App, []schema.ApprovalState{s})
		}
		a.Say("%s %s: %s of %s", s.State, s.ID, view.ApprovalCall(&s), view.ApprovalAgent(&s))
		if s.Advisory {
			a.Say("this approval is advisory: pid %d is not confined, so it could have answered the question itself; start agents with \"pwos run\" to confine them", s.PID)
		}
		return nil
	})
}
