package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

func newApprovals(a *app) *cobra.Command {
	var follow, all bool
	cmd := &cobra.Command{
		Use:   "approvals",
		Short: "show what waits for somebody's approval",
		Long: `approvals lists the questions that rules of the policy with @ask have raised: who wants
to call what, under which rule, and how long there is for an answer. --all lists those
that were answered too, as far as they are remembered. -f shows what waits, and goes on
with each new question and each answer, until interrupted.`,
		Example: `  pwos approvals
  pwos approvals -f
  pwos approvals --json | jq -c '.data'`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if follow {
				if all {
					return usage(cmd, errors.New("--follow shows what comes: --all does not go with it"))
				}
				return a.followApprovals(cmd.Context())
			}
			return a.withKernel(cmd.Context(), usualTimeout, func(ctx context.Context, c *client.Client) error {
				return a.listApprovals(ctx, c, all)
			})
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what comes")
	cmd.Flags().BoolVar(&all, "all", false, "those that were answered or have expired too")
	return cmd
}

// approvalsOf returns the questions, all pages of them.
func approvalsOf(ctx context.Context, c *client.Client, all bool) (list []schema.ApprovalState, err error) {
	var in schema.ApprovalListInput
	if waiting := schema.ApprovalWaiting; !all {
		in.State = &waiting
	}
	for {
		out, err := invokeAs(ctx, c, schema.ApprovalList, &in)
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
	if a.wantsJSON() {
		return printEach(a, list)
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
		a.say("pwos approve %s lets it be done once, pwos approve %s --for 1h for an hour; pwos refuse %s --why '...' does not", next, next, next)
	case len(list) == 0:
		a.say("nothing waits for an approval")
	}
	return a.printTable(t)
}

// followApprovals prints the open questions, and then new ones.
func (a *app) followApprovals(ctx context.Context) error {
	f := newFeed(a, column{"id", 6}, column{"state", 8}, column{"agent", 20}, column{"rule", 16}, column{"left", 8}, column{"call", 0})
	return subscribe(ctx, a, schema.ApprovalSubscribe, new(schema.ApprovalSubscribeInput), func(_ string, event schema.Message, s schema.ApprovalState) error {
		return f.write(event.Data, view.ApprovalCells(&s, time.Now())...)
	})
}

func newApprove(a *app) *cobra.Command {
	in := &schema.ApprovalDecideInput{Decision: schema.Approve}
	var span time.Duration
	cmd := &cobra.Command{
		Use:   "approve ID",
		Short: "let a call be made that waits for approval",
		Long: `approve answers a question of "pwos approvals": that very call may be made, once and
before the question expires, or with --for as often as it is made until then. Another
call, with other data, is another question.

Exit status: 4 there is no such question, 8 it was answered already or has expired.`,
		Example: `  pwos approve q-17
  pwos approve q-17 --for 1h`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.ID = args[0]
			if cmd.Flags().Changed("for") {
				seconds := int64(span / time.Second)
				if seconds < 1 {
					return usage(cmd, errors.New("--for must be at least 1s"))
				}
				in.ForSeconds = &seconds
			}
			return a.decide(cmd.Context(), in)
		},
	}
	cmd.Flags().Var((*spanFlag)(&span), "for", "let the same call be made for so long, such as 1h (default: once)")
	memberFlag(cmd, in, "why", "why", "the reason, for the record")
	return cmd
}

func newRefuse(a *app) *cobra.Command {
	in := &schema.ApprovalDecideInput{Decision: schema.Refuse}
	cmd := &cobra.Command{
		Use:   "refuse ID",
		Short: "refuse a call that waits for approval",
		Long: `refuse answers a question of "pwos approvals": the call is refused, and the same call is
refused without asking again until the question expires. The agent is told why.

Exit status: 4 there is no such question, 8 it was answered already or has expired.`,
		Example: `  pwos refuse q-17
  pwos refuse q-17 --why 'not in production'`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.ID = args[0]
			return a.decide(cmd.Context(), in)
		},
	}
	memberFlag(cmd, in, "why", "why", "the reason, which the agent is told")
	return cmd
}

// decide answers a question, and shows it.
func (a *app) decide(ctx context.Context, in *schema.ApprovalDecideInput) error {
	return a.withKernel(ctx, usualTimeout, func(ctx context.Context, c *client.Client) error {
		s, err := invokeAs(ctx, c, schema.ApprovalDecide, in)
		if err != nil {
			return err
		}
		if a.wantsJSON() {
			return printEach(a, []schema.ApprovalState{s})
		}
		a.say("%s %s: %s of %s", s.State, s.ID, view.ApprovalCall(&s), view.ApprovalAgent(&s))
		if s.Advisory {
			a.say("it is advisory: the kernel does not confine pid %d, which could have answered itself; \"pwos run\" confines it", s.PID)
		}
		return nil
	})
}
