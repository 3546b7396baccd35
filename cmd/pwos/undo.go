package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

func newUndo(a *app) *cobra.Command {
	u := undoSteps{app: a}
	var files string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "undo SEQ|NAME|STEP",
		Short: "take back what an agent changed, or what an entry of the journal did",
		Long: `undo takes back what steps of an agent changed in the files of one directory: claude:12 is one
step, claude all of its latest run; with --last 10m those that ended in that time, with --since
claude:12 or --since 08:00 those from there on. "pwos steps" lists them. It is the directory that
holds the current one, or the one that holds --tree PATH, and no other.

Each file is taken back by itself. What anybody changed later stays, in other files and in other
lines of the same text. Where that cannot be told apart, it is a conflict: conflicts are listed and
nothing is written; --partial takes back the rest. At a terminal, undo first shows what it would do,
and asks. The undo is a step too: undoing that makes the change again. A running agent is stopped
for the moment.

A number, which may be written #327, is an entry of the journal: undo reverts what that did, if
nothing has changed its result since. A key gets its earlier value back, a process its token, a
message is removed from the mailboxes where it is unread. The effect of a tool is undone by the
syscall that the tool's manifest names. "pwos audit log" has the numbers of entries.

Exit status: 3 only the operator may undo, 4 no such agent, step or entry, 8 there are conflicts,
the content from before is not kept any more, or the entry's result was changed since.`,
		Example: `  pwos undo claude:12
  pwos undo claude --last 10m --dry-run
  pwos undo claude --since claude:9 --partial
  pwos undo 327`,
		Args:              cli.Arguments(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completeSteps(a, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			u.in.DryRun = given(dryRun)
			switch {
			case (len(args) == 1) == (files != ""):
				return cli.Usage(cmd, errors.New("give an agent, as claude, a step of it, as claude:12, or the number of an entry"))
			case files != "":
				return a.undoFiles(cmd, files, &u)
			case strings.Trim(strings.TrimPrefix(args[0], "#"), "0123456789") == "":
				return a.undoEntry(cmd, args[0], &u)
			}
			of, err := arg.ParseSteps(args[0])
			if err == nil {
				err = u.choose(of)
			}
			if err != nil {
				return cli.Usage(cmd, err)
			}
			return a.WithKernel(cmd.Context(), 0, u.run)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&dryRun, "dry-run", false, "only show what would be done")
	flags.Var(sinceValue{&u.since}, "since", "this step and later ones, or those that ended after a time")
	flags.Var((*cli.SpanFlag)(&u.last), "last", "only steps that ended in this time, such as 10m")
	flags.StringVar(&u.tree, "tree", "", "in the directory that holds this path (default .)")
	flags.BoolVar(&u.partial, "partial", false, "leave what conflicts, and take back the rest")
	flags.StringVar(&files, "files", "", "")
	flags.Lookup("files").Hidden = true // an older spelling of undo NAME
	return cmd
}

// undoEntry undoes an entry of the journal.
func (a *app) undoEntry(cmd *cobra.Command, text string, u *undoSteps) error {
	if flag := cli.Given(cmd, "since", "last", "tree", "partial"); flag != "" {
		return cli.Usage(cmd, fmt.Errorf("--%s goes with an agent or a step of one, and %s is an entry of the journal", flag, text))
	}
	seq, err := arg.ParseEntry(text, 1)
	if err != nil {
		return cli.Usage(cmd, err)
	}
	return a.WithKernel(cmd.Context(), 0, func(ctx context.Context, c *client.Client) error {
		out, data, err := reported(ctx, a, c, schema.MessageUndo, &schema.UndoInput{Seq: seq, DryRun: u.in.DryRun})
		switch {
		case err != nil:
			return err
		case a.WantsJSON():
			return a.PrintLine(data)
		}
		return a.PrintText(view.UndoText(out))
	})
}

// undoFiles undoes the latest run of an agent, as --files names it.
func (a *app) undoFiles(cmd *cobra.Command, files string, u *undoSteps) error {
	if state, err := cli.StateDir(); err == nil {
		at := filepath.Join(state, "snapshots", filepath.Base(files), "tree")
		if _, err := os.Lstat(at); err == nil {
			return cli.Usage(cmd, fmt.Errorf("%s is a copy that an earlier version made: its files are in %s", files, view.Escaped(at)))
		}
	}
	var pid int64
	if err := a.Agent(cmd, files, arg.Who{}, &pid); err != nil {
		return cli.Usage(cmd, err)
	}
	return a.WithKernel(cmd.Context(), 0, func(ctx context.Context, c *client.Client) error {
		d, err := cli.Describe(ctx, c, pid)
		if err != nil {
			return err
		}
		if err := u.choose(arg.Steps{Agent: d.AgentID}); err != nil {
			return cli.Usage(cmd, err)
		}
		return u.run(ctx, c)
	})
}

// given returns a pointer to a flag of a call's data that is set; nil for one that is not.
func given(flag bool) *bool {
	if !flag {
		return nil
	}
	return &flag
}

// sinceValue is the value of undo's --since.
type sinceValue struct{ to *arg.Since }

func (sinceValue) String() string { return "" }
func (sinceValue) Type() string   { return "step|time" }

func (f sinceValue) Set(text string) (err error) {
	if *f.to, err = arg.ParseSince(text, time.Now()); err != nil {
		return cli.Told{Err: fmt.Errorf("--since: %w", err)}
	}
	return nil
}
