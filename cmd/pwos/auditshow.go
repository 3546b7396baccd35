package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

func newAuditShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show SEQ",
		Short: "show everything recorded about one call",
		Long: `show prints all that the record has about one call: its caller and its door, the
tokens in force then, its data without secrets, its outcome, its cause and what
it caused, the approval or the rule that decided it, and the hashes and the signed
checkpoint that prove it. SEQ is the number of an entry, as "pwos audit log" prints it.

An agent sees its own calls and its descendants'. Exit status: 3 the call is of another
process, 4 no such entry.`,
		Example: `  pwos audit show 34
  pwos audit show 34 --json | jq .proof`,
		Args: cli.Arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			seq, err := arg.ParseEntry(args[0], 1)
			if err != nil {
				return cli.Usage(cmd, err)
			}
			return a.WithKernel(cmd.Context(), cli.UsualTimeout, func(ctx context.Context, c *client.Client) error {
				shown, err := showCall(ctx, c, &schema.AuditShowInput{Seq: &seq})
				if err != nil {
					return err
				}
				if a.WantsJSON() {
					return a.PrintLine(shown.Raw)
				}
				if shown.Asked, err = questionOf(ctx, c, &shown); err != nil {
					return err
				}
				return a.PrintTable(shown.Table(shown.Names(), a.Style))
			})
		},
	}
}

// showCall requests everything that is recorded about one call.
func showCall(ctx context.Context, c *client.Client, in *schema.AuditShowInput) (shown view.WholeCall, err error) {
	typ := schema.AuditShow.Type
	if shown.Raw, err = cli.Invoke(ctx, c, typ, in); err != nil {
		return shown, err
	}
	shown.AuditShowOutput, err = view.AnswerAs[schema.AuditShowOutput](typ, shown.Raw)
	return shown, err
}

// questionOf returns the approval question of a call; nil if there was none, the kernel no longer remembers it, or the caller may not
// see it.
func questionOf(ctx context.Context, c *client.Client, shown *view.WholeCall) (*schema.ApprovalState, error) {
	if shown.Approval == nil {
		return nil, nil
	}
	list, err := cli.InvokeAs(ctx, c, schema.ApprovalList, &schema.ApprovalListInput{})
	if errors.Is(err, fault.Forbidden) {
		return nil, nil
	}
	for i := range list.Approvals {
		if list.Approvals[i].ID == shown.Approval.Approval {
			return &list.Approvals[i], nil
		}
	}
	return nil, err
}
