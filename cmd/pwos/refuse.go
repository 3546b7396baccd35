package main

import (
	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
)

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
	cli.MemberFlag(cmd, in, "digest", "digest", "answer only if the question has this digest, as it was listed")
	cli.MemberFlag(cmd, in, "why", "why", "the reason, which the agent is told")
	return cmd
}
