package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

func newApply(a *app) *cobra.Command {
	in := new(schema.ReviewApplyInput)
	var dryRun, partial bool
	cmd := &cobra.Command{
		Use:   "apply NAME [PATH...]",
		Short: "take over what an agent changed in its copy of a directory",
		Long: `apply takes over what an agent changed in the copy that it works on (run --review), at and below
the paths that are named, or everywhere. Until then, the directory is as it was before. "pwos
diff NAME" shows what it is.

Each file is taken over by itself. What anybody changed in the directory meanwhile stays, in other
files and in other lines of the same text. Where that cannot be told apart, it is a conflict:
conflicts are listed and nothing is written; --partial takes over the rest. What git runs or is
set to, such as its hooks, stays as it is. At a terminal, apply first shows what it would do, and
asks. It is a step of the agent, which "pwos undo" takes back.

Without PATH, the copy is removed then, unless the agent still runs or something is left. A running
agent is stopped for the moment.

Exit status: 3 only the operator may, 4 no such copy or change, 8 there are conflicts.`,
		Example: `  pwos apply claude
  pwos apply claude --dry-run
  pwos apply claude src README.md --partial`,
		Args: cli.Arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			in.Partial = given(partial)
			if in.Agent, in.Paths, err = copyNamed(args); err != nil {
				return cli.Usage(cmd, err)
			}
			act := planned[schema.ReviewOutput]{
				app: a, of: reviewPlan, table: view.ApplyPlan, done: view.AppliedText, ask: "take over %s", nothing: "there is nothing to take over", ends: true,
				partial: partial, rest: "takes over",
				call: func(ctx context.Context, c *client.Client, dryRun *bool, expect *string) (schema.ReviewOutput, error) {
					ask := *in
					ask.DryRun, ask.Expect = dryRun, expect
					return cli.InvokeAs(ctx, c, schema.ReviewApply, &ask)
				},
			}
			return a.WithKernel(cmd.Context(), 0, func(ctx context.Context, c *client.Client) error { return act.run(ctx, c, dryRun) })
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be done")
	cmd.Flags().BoolVar(&partial, "partial", false, "leave what conflicts, and take over the rest")
	return cmd
}

// copyNamed returns the agent and the paths of the arguments of apply and discard.
func copyNamed(args []string) (agent string, paths []string, err error) {
	for _, arg := range args[1:] {
		path, err := realPath(arg)
		if err != nil {
			return "", nil, err
		}
		paths = append(paths, path)
	}
	if strings.Contains(args[0], ":") {
		return "", nil, fmt.Errorf("give an agent whose copy it is, not %q: a step is undone with pwos undo", args[0])
	}
	return args[0], paths, nil
}
