package main

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

func newDiff(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "diff NAME|STEP [PATH]",
		Short: "show what steps of an agent changed, as git prints it",
		Long: `diff shows what steps of an agent changed together: claude:12 is one step, claude:3..8 are
several, and claude is all of its latest run, or if it works on a copy (run --review), what is
changed in that and was not applied yet. PATH shows only what is at or below it. Without
PATH, it is the directory that holds the current one, or if none of these steps changed
anything there, every directory that they changed.

At a terminal, the text goes through GIT_PAGER, PAGER or less. Contents that look secret, such
as those of .env, are not shown. What others changed at the same time as a step that "pwos
steps" calls shared is shown too.

Exit status: 3 denied, 4 no such agent or step, 8 the content is not kept any more.`,
		Example: `  pwos diff claude
  pwos diff claude:12
  pwos diff claude:3..8 src/cart.ts
  pwos diff claude:12 | git apply -R`,
		Args:              cli.Arguments(cobra.RangeArgs(1, 2)),
		ValidArgsFunction: completeSteps(a, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			of, err := arg.ParseSteps(args[0])
			if err != nil {
				return cli.Usage(cmd, err)
			}
			in := &schema.StepDiffInput{Agent: of.Agent}
			if of.From != 0 {
				in.From, in.To = &of.From, &of.To
			}
			if len(args) == 2 {
				path, err := realPath(args[1])
				if err != nil {
					return err
				}
				in.Path = &path
			}
			return a.WithKernel(cmd.Context(), 0, func(ctx context.Context, c *client.Client) error {
				if in.Path == nil {
					if in.Path, err = treeHere(ctx, c, of); err != nil {
						return err
					}
				}
				return a.diff(ctx, c, in)
			})
		},
	}
}

// diff prints what steps changed, part by part.
func (a *app) diff(ctx context.Context, c *client.Client, in *schema.StepDiffInput) error {
	text, more, err := diffPart(ctx, c, in) // the pager starts only if there is something to show
	if errors.Is(err, fault.StepsNotFound) {
		return cmp.Or(isAgent(ctx, c, in.Agent), err)
	}
	if err != nil || len(text) == 0 {
		return err
	}
	return a.paged(func(to io.Writer) (err error) {
		if a.StdoutTerminal() {
			shown := &view.DiffWriter{To: to, Paint: a.Style}
			defer cli.CloseInto(&err, shown)
			to = shown
		}
		for {
			if _, err := to.Write(text); err != nil || !more {
				return err
			}
			in.Offset = new(view.Deref(in.Offset) + int64(len(text)))
			if text, more, err = diffPart(ctx, c, in); err != nil {
				return err
			}
		}
	})
}

func diffPart(ctx context.Context, c *client.Client, in *schema.StepDiffInput) (text []byte, more bool, err error) {
	out, err := cli.InvokeAs(ctx, c, schema.StepDiff, in)
	if err != nil {
		return nil, false, err
	}
	if text, err = base64.StdEncoding.DecodeString(out.Text); err != nil {
		return nil, false, fmt.Errorf("read answer to %s: %w", schema.StepDiff.Row().Type, err)
	}
	return text, out.More && len(text) > 0, nil
}

// treeHere returns the directory of steps that holds the current one; nil if they changed nothing there.
func treeHere(ctx context.Context, c *client.Client, of arg.Steps) (*string, error) {
	here, err := realPath(".")
	if err != nil {
		return nil, err
	}
	var steps []schema.StepState
	if of.From != 0 {
		out, getErr := cli.InvokeAs(ctx, c, schema.StepGet, &schema.StepGetInput{Agent: of.Agent, Step: of.From})
		if errors.Is(getErr, fault.StepsNotFound) { // Step.Diff says so, unless there are others
			return nil, nil
		}
		steps, err = out.Records, getErr
	} else {
		out, listErr := cli.InvokeAs(ctx, c, schema.StepList, &schema.StepListInput{Agent: &of.Agent})
		steps, err = out.Steps, listErr
	}
	var tree *string
	for i := range steps {
		if s := &steps[i]; inside(here, s.Tree) && (tree == nil || len(s.Tree) > len(*tree)) {
			tree = &s.Tree
		}
	}
	return tree, err
}

// realPath returns an absolute path without symbolic links, except for a last one to a file, which may have been changed itself. What it
// names need not exist any more.
func realPath(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", path, err)
	}
	rest, start := "", abs
	link, linkErr := os.Lstat(abs)
	to, err := os.Stat(abs)
	if linkErr == nil && err == nil && link.Mode()&os.ModeSymlink != 0 && !to.IsDir() {
		rest, start = filepath.Base(abs), filepath.Dir(abs)
	}
	for at := start; ; at = filepath.Dir(at) {
		real, err := filepath.EvalSymlinks(at)
		switch {
		case err == nil:
			return filepath.Join(real, rest), nil
		case !errors.Is(err, os.ErrNotExist) || at == filepath.Dir(at):
			return "", fmt.Errorf("find %s: %w", path, err)
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}
