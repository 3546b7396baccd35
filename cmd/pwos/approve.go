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
	"github.com/promptware-os/pwos/view"
)

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
	cli.MemberFlag(cmd, in, "digest", "digest", "answer only if the question has this digest, as it was listed")
	cli.MemberFlag(cmd, in, "why", "why", "the reason, for the record")
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
