package main

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/snapshot"
	"github.com/promptware-os/pwos/view"
)

// ownersOf returns the PIDs of the processes that started after a copy, by the id of the copy.
func ownersOf(ctx context.Context, c *client.Client) (map[string]int64, error) {
	processes, err := cli.ListProcesses(ctx, c, nil)
	owners := make(map[string]int64)
	for i := range processes {
		if id := processes[i].Snapshot; id != nil {
			owners[*id] = processes[i].PID
		}
	}
	return owners, err
}

func newSnapshots(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshots",
		Short: "list the copies of working directories, or remove one",
		Long: `snapshots lists the copies of working directories: those that "pwos run --snapshot" made,
and those of what "pwos undo --files" replaced, with the process that each is about. They
lie in the state directory. The settings snapshots.keep (20) and snapshots.keep_for (30 days)
say how many are kept, and how long; those of running agents stay. "pwos undo --files ID"
restores one.`,
		Example: `  pwos snapshots
  pwos snapshots rm s1a2b3c4d`,
		Args: cli.SubVerb,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := copies()
			if err != nil {
				return err
			}
			return a.WithKernel(cmd.Context(), cli.UsualTimeout, func(ctx context.Context, c *client.Client) error {
				return a.listCopies(ctx, c, store)
			})
		},
	}
	cmd.AddCommand(newSnapshotsRm())
	return cmd
}

func newSnapshotsRm() *cobra.Command {
	return &cobra.Command{
		Use:   "rm ID...",
		Short: "remove copies of working directories",
		Long: `rm removes copies: what an agent did to its files cannot be undone any more.

Exit status: 4 there is no such copy, 8 it is being restored.`,
		Example: `  pwos snapshots rm s1a2b3c4d`,
		Args:    cli.Arguments(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			store, err := copies()
			if err != nil {
				return err
			}
			for _, id := range args {
				if err := store.Remove(id); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// pidOrNone formats a PID; 0 is "".
func pidOrNone(pid int64) string {
	if pid == 0 {
		return ""
	}
	return strconv.FormatInt(pid, 10)
}

func (a *app) listCopies(ctx context.Context, c *client.Client, store *snapshot.Store) error {
	kept, err := store.List()
	if err != nil {
		return err
	}
	owners, err := ownersOf(ctx, c)
	if err != nil {
		return err
	}
	list := a.Listing("id", "pid", "made", "files", "copied", "directory", "")
	for _, one := range kept {
		pid, what := owners[one.ID], "before it started"
		if one.PID != 0 {
			pid, what = one.PID, "before an undo"
		}
		if one.Undoing != "" {
			what += "; an undo was cut short: run it again"
		}
		data, err := schema.Marshal(one)
		if err != nil {
			return err
		}
		if one.PID == 0 && pid != 0 {
			if data, err = cli.WithRaw(one, "pid", strconv.AppendInt(nil, pid, 10)); err != nil {
				return err
			}
		}
		if err := list.Add(data, one.ID, pidOrNone(pid), one.Time().Format(time.DateTime), strconv.FormatInt(one.Files, 10), view.Bytes(one.Bytes), view.Escaped(one.Dir), what); err != nil {
			return err
		}
	}
	return list.End()
}
