package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/version"
	"github.com/promptware-os/pwos/profile"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/snapshot"
	"github.com/promptware-os/pwos/view"
)

// byteCount is a flag value: a number of bytes such as 256M.
type byteCount int64

func (b *byteCount) String() string { return strconv.FormatInt(int64(*b), 10) }
func (b *byteCount) Type() string   { return "bytes" }

func (b *byteCount) Set(text string) error {
	n, ok := profile.Count(text)
	if !ok || n < 1 {
		return cli.Told{Err: fmt.Errorf("--snapshot-limit takes a whole number of at least 1, such as 10 or 256M, not %q", text)}
	}
	*b = byteCount(n)
	return nil
}

// addLimit adds --snapshot-limit, with its default.
func addLimit(flags *pflag.FlagSet, limit *byteCount) {
	*limit = snapshot.DefaultLimit
	flags.Var(limit, "snapshot-limit", "most bytes that a copy may take where the file system cannot share blocks, such as 512M (default 2G)")
	flags.Lookup("snapshot-limit").DefValue = ""
}

// copies opens the store of copies in the state directory.
func copies() (*snapshot.Store, error) {
	dir, err := cli.StateDir()
	if err != nil {
		return nil, err
	}
	return snapshot.Open(dir)
}

// copyBefore copies the working directory of an agent before its start.
func (a *app) copyBefore(ctx context.Context, j *job) error {
	store, err := copies()
	if err != nil {
		return err
	}
	what := snapshot.What{Limit: snapshot.DefaultLimit, Skip: j.profile.SnapshotSkip}
	if limit := j.profile.SnapshotLimit; limit != nil {
		what.Limit = *limit
	}
	made, err := store.Take(ctx, *j.input.Cwd, what)
	if err != nil {
		return err
	}
	j.input.Snapshot = &made.ID
	return nil
}

// uncopy removes the copy if the kernel refused to start the agent.
func (j *job) uncopy(refused error) error {
	if j.input.Snapshot == nil || cli.KernelCode(refused) == 0 { // without the kernel's answer, the agent may have started
		return nil
	}
	store, err := copies()
	if err != nil {
		return err
	}
	return store.Remove(*j.input.Snapshot)
}

// tellCopied prints what was copied, and removes old copies.
func (a *app) tellCopied(ctx context.Context, c *client.Client, j *job, pid int64) error {
	store, err := copies()
	if err != nil {
		return err
	}
	made, err := store.Get(*j.input.Snapshot)
	if err != nil {
		return err
	}
	for _, text := range made.LeftOut {
		a.Say("not copied: %s", text)
	}
	a.Say(`%s is copied (%s, %s): "pwos undo --files %d" restores it`, view.Escaped(made.Dir), cli.Counted(made.Files, "file"), view.Bytes(made.Bytes), pid)
	processes, err := cli.ListProcesses(ctx, c, nil)
	if err != nil {
		return err
	}
	running := make(map[string]bool)
	for i := range processes {
		if p := &processes[i]; p.Snapshot != nil && p.State != view.Terminated {
			running[*p.Snapshot] = true
		}
	}
	cfg, _, err := config.Settings(nil, os.Getenv, io.Discard, version.Build())
	if err != nil {
		return fmt.Errorf("remove old copies: %w", err)
	}
	removed, err := store.Prune(time.Now(), cfg.Snapshots.Keep, time.Duration(cfg.Snapshots.KeepFor), running)
	for _, old := range removed {
		a.Say("removed the copy %s of %s, made %s", old.ID, view.Escaped(old.Dir), old.Time().Format(time.DateTime))
	}
	return err
}

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
