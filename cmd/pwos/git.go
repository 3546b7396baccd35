package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/cmd/pwos/internal/gitdirs"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

func newGit(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "git",
		Short: "what agents changed of git's settings and hooks: list, take over, drop",
		Long: `The hooks and settings that an agent of "pwos run" finds in the .git of its project are private
copies: what it changes there is in effect for itself. When it ends, new remotes and the tracking of new
branches are taken over. "pwos run" asks at a terminal about the rest; what has no answer, git lists.`,
		Example: `  pwos git
  pwos git take branch.main.remote branch.main.merge
  pwos git drop`,
		Args: cli.SubVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listGit(cmd.Context()) },
	}
	cmd.AddCommand(&cobra.Command{
		Use: "ls", Short: "list the changes", Example: "  pwos git ls", Args: cli.Arguments(cobra.NoArgs),
		Long: `ls lists the changes: the file, the key or hook, the value now, and that of the agent.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listGit(cmd.Context()) },
	}, &cobra.Command{
		Use: "take [KEY...]", Short: "take changes over, all or some", Example: "  pwos git take core.hookspath hooks/pre-commit",
		Long: `take makes the changes in your own settings and hooks: your git then runs what they name. Without
KEY it takes all.

Exit status: 4 there is no such change.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.answerGit(cmd.Context(), args, true)
		},
	}, &cobra.Command{
		Use: "drop [KEY...]", Short: "drop changes, all or some", Example: "  pwos git drop",
		Long: `drop forgets the changes. Without KEY it drops all.

Exit status: 4 there is no such change.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.answerGit(cmd.Context(), args, false)
		},
	})
	return cmd
}

// gitChanges returns the changes of agents that have ended, also of those whose client did not see that.
func (a *app) gitChanges(ctx context.Context) (store gitdirs.Store, left []gitdirs.Change, err error) {
	if store, err = gitStore(); err != nil {
		return store, nil, err
	}
	ctx, cancel := a.Bound(ctx, cli.UsualTimeout)
	defer cancel()
	c, err := a.DialRunning(ctx)
	switch {
	case err == nil:
		err = store.Sweep(ctx, func(pid int64) (bool, error) { return runs(ctx, c, pid) })
		err = errors.Join(err, c.Close())
	case errors.Is(err, fault.DaemonNotRunning): // one that starts again with the kernel has not ended
		err = nil
	}
	if err == nil {
		left, err = store.Changes()
	}
	return store, left, err
}

func (a *app) listGit(ctx context.Context) error {
	_, left, err := a.gitChanges(ctx)
	if err != nil {
		return err
	}
	list := a.Listing("key", "is", "agent wants", "file", "agent")
	for i := range left {
		one := &left[i]
		is, wants := shownValues(one.Was), shownValues(one.Is)
		if !one.IsSetting() {
			is, wants = "", "the agent's"
			if one.Is == nil {
				wants = "none"
			}
		}
		line := view.Object(nil).Text("key", changeName(one)).Text("is", is).Text("wants", wants).Text("file", one.File).Text("agent", one.Agent).Close()
		if err := list.Add(line, view.Escaped(changeName(one)), view.Escaped(is), view.Escaped(wants), view.Escaped(one.File), view.Escaped(one.Agent)); err != nil {
			return err
		}
	}
	return list.End()
}

// changeName is what the user calls a change.
func changeName(c *gitdirs.Change) string {
	if c.IsSetting() {
		return c.Key
	}
	return c.File[strings.LastIndexByte(c.File, '/')+1:] + "/" + c.Key
}

// answerGit answers the changes with these names, or all.
func (a *app) answerGit(ctx context.Context, names []string, take bool) error {
	store, left, err := a.gitChanges(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !slices.ContainsFunc(left, func(c gitdirs.Change) bool { return changeName(&c) == name }) {
			return fault.PlaceNotThere.New("no agent left a change of %s", view.Escaped(name)).WithFix(`"pwos git" lists those there are`)
		}
	}
	for i := range left {
		if len(names) > 0 && !slices.Contains(names, changeName(&left[i])) {
			continue
		}
		if err := store.Answer(ctx, &left[i], take); err != nil {
			return err
		}
	}
	return store.Clean(ctx)
}
