package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/snapshot"
	"github.com/promptware-os/pwos/view"
)

// undoFiles are the flags of `pwos undo --files`.
type undoFiles struct {
	of            string
	force, dryRun bool
	limit         byteCount
}

func (f *undoFiles) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.of, "files", "", "restore the working directory of this agent, or a copy by its id")
	flags.BoolVar(&f.force, "force", false, "with --files: also where files have changed since the agent ended")
	addLimit(flags, &f.limit)
}

func (f *undoFiles) alone(cmd *cobra.Command) string {
	return cli.Given(cmd, "force", "snapshot-limit")
}

func (a *app) undoFiles(cmd *cobra.Command, f *undoFiles) error {
	var pid int64 // of the agent, unless a copy is named
	if !snapshot.IsID(f.of) {
		if err := a.Agent(cmd, f.of, arg.Who{}, &pid); err != nil {
			return cli.Usage(cmd, fmt.Errorf(`--files takes an agent or the id of a copy, which "pwos snapshots" lists: %w`, err))
		}
	}
	store, err := copies()
	if err != nil {
		return err
	}
	return a.WithKernel(cmd.Context(), 0, func(ctx context.Context, c *client.Client) error {
		id, agent, err := undone(ctx, c, store, f.of, pid)
		if err != nil {
			return err
		}
		if !view.Ended(agent) {
			return fault.ProcessAlive.New("pid %d is running", agent.PID).WithFix(`end it first: "pwos kill %d"`, agent.PID)
		}
		end := time.Time{} // zero: the end is unknown, and every file counts as changed after it
		if agent.Exit != nil {
			end = time.UnixMilli(agent.Exit.Time + 1) // the time was truncated to milliseconds
		}
		r, err := store.Restore(ctx, id, end)
		if err != nil {
			return err
		}
		return errors.Join(a.restoreFiles(ctx, c, r, agent.PID, f), r.Close())
	})
}

// undone returns the copy to restore, and the process whose changes it undoes.
func undone(ctx context.Context, c *client.Client, store *snapshot.Store, of string, pid int64) (id string, agent *schema.Descriptor, err error) {
	named := snapshot.IsID(of)
	if named {
		if pid, err = ownerOf(ctx, c, store, of); err != nil {
			return "", nil, err
		}
	}
	d, err := cli.Describe(ctx, c, pid)
	if err != nil {
		return "", nil, err
	}
	if named {
		return of, &d, nil
	}
	if d.Snapshot == nil {
		return "", nil, fault.SnapshotNone.New("there is no copy of files from before pid %d", pid).
			WithFix(`"pwos run --snapshot" makes one; "pwos snapshots" lists those there are`)
	}
	return *d.Snapshot, &d, nil
}

// ownerOf returns the PID of the process that a copy belongs to.
func ownerOf(ctx context.Context, c *client.Client, store *snapshot.Store, id string) (int64, error) {
	about, err := store.Get(id)
	if err != nil {
		return 0, err
	}
	if about.PID != 0 {
		return about.PID, nil
	}
	owners, err := ownersOf(ctx, c)
	if err != nil {
		return 0, err
	}
	if pid, ok := owners[id]; ok {
		return pid, nil
	}
	return 0, fault.SnapshotNone.New("the kernel remembers no process that copy %s was made for", id).
		WithFix("its files are in the directory snapshots/%s/tree of the state directory", id)
}

// restoreFiles applies a prepared restore, or only prints it with --dry-run.
func (a *app) restoreFiles(ctx context.Context, c *client.Client, r *snapshot.Restore, pid int64, f *undoFiles) error {
	if r.Nothing() {
		a.Say("%s is as it was before pid %d: nothing to restore", view.Escaped(r.Dir), pid)
		return r.Done()
	}
	refused := len(r.Plan.Since) > 0 && !f.force
	if err := a.printPlan(&r.Plan); err != nil || f.dryRun {
		return err
	}
	if refused {
		return fault.SnapshotChanged.New("%s below %s changed after pid %d ended, and nothing was restored", cli.Counted(int64(len(r.Plan.Since)), "file"), view.Escaped(r.Dir), pid).
			WithFix("save what you need of them; --force restores anyway, and keeps a copy of what it replaces")
	}
	kept, err := r.Keep(ctx, pid, int64(f.limit))
	if err != nil {
		return err
	}
	in := &schema.RestoreFilesInput{PID: pid, Snapshot: r.ID, Dir: r.Dir}
	in.Made, in.Changed, in.Removed = r.Plan.Count()
	if kept != "" {
		in.Replaced = &kept
	}
	if _, err := cli.InvokeAs(ctx, c, schema.ProcessRestoreFiles, in); err != nil {
		return errors.Join(err, r.Forget(kept))
	}
	if err := r.Apply(ctx, kept); err != nil {
		a.Say(`%s is restored in part: run the same command again`, view.Escaped(r.Dir))
		return err
	}
	a.Say("restored %s: %d made, %d changed, %d removed", view.Escaped(r.Dir), in.Made, in.Changed, in.Removed)
	if kept != "" {
		a.Say("what was there is kept: %s restores that", quote.Command("pwos", "undo", "--files", kept))
	}
	return nil
}

// printPlan prints one line for each change, and for each file that changed after the agent's end.
func (a *app) printPlan(p *snapshot.Plan) error {
	list := a.Listing("what", "path", "")
	for _, change := range p.Changes {
		line := view.Object(nil).Text("change", change.What).Text("path", change.Path).Close()
		if err := list.Add(line, change.What, view.Escaped(change.Path), ""); err != nil {
			return err
		}
	}
	for _, path := range p.Since {
		line := view.Object(nil).Text("change", "since").Text("path", path).Close()
		if err := list.Add(line, "since", view.Escaped(path), "changed after the agent ended"); err != nil {
			return err
		}
	}
	return list.End()
}
