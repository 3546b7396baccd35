package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/version"
	"github.com/promptware-os/pwos/profile"
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
		a.note("not copied: %s", text)
	}
	a.note(`%s is copied (%s, %s): "pwos undo --files %d" restores it`, view.Escaped(made.Dir), cli.Counted(made.Files, "file"), view.Bytes(made.Bytes), pid)
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
		a.note("removed the copy %s of %s, made %s", old.ID, view.Escaped(old.Dir), old.Time().Format(time.DateTime))
	}
	return err
}
