package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

func newUndo(a *app) *cobra.Command {
	in := new(schema.UndoInput)
	var files undoFiles
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "undo SEQ | --files AGENT",
		Short: "undo what an entry of the journal did, or what an agent did to its files",
		Long: `undo reverts what an entry of the journal did, if nothing has changed its result since: a key
gets its earlier value back, a process its token, a message is removed from
the mailboxes where it is unread. The effect of a tool is undone by the syscall that the
tool's manifest names. "pwos audit log" has the numbers of entries.

The undo is an entry too. Undoing that makes the change again.

--files restores the working directory of an ended agent from the copy that "pwos run
--snapshot" made, and prints what it makes, changes and removes. Files that have changed
since the agent ended are listed and nothing is restored, unless --force is given. What is
replaced is kept as a copy: "pwos undo --files ID" restores that one. Sockets, pipes,
devices and mounted file systems are left alone. If it is interrupted, run it again.

Exit status: 3 only the operator may undo, 4 no such entry or copy, 8 its result was changed
since, it is already undone, or it changed nothing; the agent is running, or files were
changed since it ended.`,
		Example: `  pwos undo 327 --dry-run
  pwos undo 327
  pwos undo --files 7 --dry-run
  pwos undo --files 7`,
		Args: cli.Arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (files.of != "") {
				return cli.Usage(cmd, errors.New("give the number of an entry, or --files with an agent or the id of a copy"))
			}
			if files.of != "" {
				files.dryRun = dryRun
				return a.undoFiles(cmd, &files)
			}
			if flag := files.alone(cmd); flag != "" {
				return cli.Usage(cmd, fmt.Errorf("--%s goes with --files", flag))
			}
			var err error
			if in.Seq, err = arg.ParseEntry(args[0], 1); err != nil {
				return cli.Usage(cmd, err)
			}
			if dryRun {
				in.DryRun = &dryRun
			}
			return a.WithKernel(cmd.Context(), 0, func(ctx context.Context, c *client.Client) error {
				out, data, err := reported(ctx, a, c, schema.MessageUndo, in)
				switch {
				case err != nil:
					return err
				case a.WantsJSON():
					return a.PrintLine(data)
				}
				return a.PrintText(view.UndoText(out))
			})
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be done")
	files.add(cmd.Flags())
	return cmd
}
