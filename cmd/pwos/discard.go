package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

func newDiscard(a *app) *cobra.Command {
	in := new(schema.ReviewDiscardInput)
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "discard NAME [PATH...]",
		Short: "drop what an agent changed in its copy of a directory",
		Long: `discard removes the copy that an agent worked on (run --review), with what was changed in it and
not applied. The directory itself stays as it is. The agent must have ended: see "pwos kill".

With PATH, only what is changed at and below these paths is taken back, and the agent can go on with
the copy. At a terminal, discard first shows what would be dropped, and asks.

Exit status: 3 only the operator may, 4 no such copy or change, 8 the agent still runs.`,
		Example: `  pwos discard claude
  pwos discard claude package-lock.json`,
		Args: cli.Arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if in.Agent, in.Paths, err = copyNamed(args); err != nil {
				return cli.Usage(cmd, err)
			}
			act := planned[schema.ReviewOutput]{
				app: a, of: reviewPlan, table: view.DiscardPlan, done: view.DiscardedText, ask: "drop %s", nothing: "nothing is dropped: there is no change in the copy", ends: true,
				call: func(ctx context.Context, c *client.Client, dryRun *bool, expect *string) (schema.ReviewOutput, error) {
					ask := *in
					ask.DryRun, ask.Expect = dryRun, expect
					return cli.InvokeAs(ctx, c, schema.ReviewDiscard, &ask)
				},
			}
			return a.WithKernel(cmd.Context(), 0, func(ctx context.Context, c *client.Client) error { return act.run(ctx, c, dryRun) })
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be dropped")
	return cmd
}
