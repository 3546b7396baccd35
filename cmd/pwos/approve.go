package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
)

func newApprove(a *app) *cobra.Command {
	var span time.Duration
	var why string
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
			in := schema.ApprovalDecideInput{ID: args[0], Decision: schema.Approve, Why: textGiven(cmd, "why", why)}
			if cmd.Flags().Changed("for") {
				seconds := int64(span / time.Second)
				if seconds < 1 {
					return usage(cmd, errors.New("--for must be at least 1s"))
				}
				in.ForSeconds = &seconds
			}
			return a.decide(cmd.Context(), &in)
		},
	}
	cmd.Flags().Var((*spanFlag)(&span), "for", "let the same call be made for so long, such as 1h (default: once)")
	cmd.Flags().StringVar(&why, "why", "", "the reason, for the record")
	return cmd
}

func newRefuse(a *app) *cobra.Command {
	var why string
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
			return a.decide(cmd.Context(), &schema.ApprovalDecideInput{ID: args[0], Decision: schema.Refuse, Why: textGiven(cmd, "why", why)})
		},
	}
	cmd.Flags().StringVar(&why, "why", "", "the reason, which the agent is told")
	return cmd
}

// decide answers a question, and says what it was.
func (a *app) decide(ctx context.Context, in *schema.ApprovalDecideInput) error {
	return a.withKernel(ctx, usualTimeout, func(ctx context.Context, c *client.Client) error {
		s, err := invokeAs(ctx, c, schema.ApprovalDecide, in)
		if err != nil {
			return err
		}
		if a.wantsJSON() {
			return a.printApproval(&s)
		}
		a.say("%s %s: %s of %s", s.State, s.ID, callOf(&s), agentOf(&s))
		if s.Advisory {
			a.say("it is advisory: the kernel does not confine pid %d, which could have answered itself; \"pwos run\" confines it", s.PID)
		}
		return nil
	})
}
