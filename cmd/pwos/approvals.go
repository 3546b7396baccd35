package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
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
prints each new question and each answer until interrupted. A question of an agent is also shown
at the terminal of its pwos run, where Ctrl-] and then y, a or n answers it.`,
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
