package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/daemon/offline"
	"github.com/promptware-os/pwos/daemon/state"
	"github.com/promptware-os/pwos/journal/backup"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

func newRestore(a *app) *cobra.Command {
	var here, agents bool
	var passphraseFile string
	cmd := &cobra.Command{
		Use:   "restore FILE | --here",
		Short: "make a new kernel from a backup or a copied state directory",
		Long: `restore FILE makes the state directory of this environment from a backup ("-" is stdin).
The directory must not exist yet, or must be empty. The whole backup is verified before
anything takes the directory's place: a truncated or altered backup leaves nothing behind.

restore --here is for a state directory that was copied from another machine, or moved to
another file system. A kernel does not start on such a directory, since it could run the
agents of the original kernel a second time.

Both begin a new epoch of the record with a new host key, which the record's next entry
names. The programs of the agents are not started until you allow it: with --agents now,
or with "pwos restore --here --agents" later. The processes can be inspected and ended
meanwhile.

If the backup has the stores of steps (backup --steps) with the key of what looks secret in
files, its passphrase is asked for at a terminal, or is the first line of --passphrase-file.
Without it the key is left out, for good: such contents cannot be undone any more.

Clients do not sign for an unknown host key: confirm the new one with
"pwos auth trust FINGERPRINT".

Exit status: 3 the passphrase is wrong, 8 the directory is in use or not empty, 10 the backup is broken.`,
		Example: `  PWOS_STATE_DIR=~/restored pwos restore /backup/pwos-2026-11-24
  pwos restore --here
  pwos restore --here --agents`,
		Args: cli.Arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if here == (len(args) == 1) {
				return cli.Usage(cmd, errors.New("say what to restore: a FILE that \"pwos backup\" wrote, or --here for the state directory of this environment"))
			}
			if here && passphraseFile != "" {
				return cli.Usage(cmd, errors.New("--passphrase-file goes with a FILE that \"pwos backup --steps\" wrote"))
			}
			made, err := state.Restored{}, error(nil)
			if here {
				made, err = offline.Restore(cmd.Context(), nil, os.Getenv, a.Stderr, agents)
			} else {
				made, err = a.restore(cmd.Context(), args[0], agents, passphraseFile)
			}
			if err != nil {
				return err
			}
			return a.printRestored(made)
		},
	}
	cmd.Flags().BoolVar(&here, "here", false, "restore the state directory of this environment")
	cmd.Flags().BoolVar(&agents, "agents", false, "allow the programs of agents to start with the kernel")
	cmd.Flags().StringVar(&passphraseFile, "passphrase-file", "", "the passphrase of the key of steps is the first line of this file")
	return cmd
}

// restore creates the state directory from a backup. It writes to a temporary directory beside the final path, and then renames
// that directory.
func (a *app) restore(ctx context.Context, path string, agents bool, passphraseFile string) (made state.Restored, err error) {
	ctx, cancel := a.Bound(ctx, 0)
	defer cancel()
	in := io.Reader(a.Stdin)
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return made, err
		}
		defer f.Close() // opened for reading only
		in = f
	}
	dir, err := cli.JournalDir()
	if err != nil {
		return made, err
	}
	dir = filepath.Dir(dir)
	if err := vacant(dir); err != nil {
		return made, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return made, err
	}
	beside, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".restore-")
	if err != nil {
		return made, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(beside))
		}
	}()
	if _, err := backup.Read(ctx, in, beside, func() (int64, error) { return roomIn(beside) }); err != nil {
		return made, err
	}
	opened, err := a.openKey(ctx, beside, passphraseFile)
	if err != nil {
		return made, err
	}
	getenv := func(name string) string {
		if name == "PWOS_STATE_DIR" {
			return beside
		}
		return os.Getenv(name)
	}
	if made, err = offline.Restore(ctx, nil, getenv, a.Stderr, agents); err != nil {
		return made, err
	}
	if err := os.Rename(beside, dir); err != nil { // dir is an empty directory, or does not exist
		return made, fmt.Errorf("put the restored state in its place: %w", err)
	}
	if !opened {
		a.Say("the key of what looks secret in files was left out: to have it, restore to another directory with --passphrase-file")
	}
	made.StateDir = dir
	return made, syncDir(filepath.Dir(dir))
}

// vacant returns an error if the directory exists and is not empty.
func vacant(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil && len(entries) > 0 {
		err = fault.FileExists.New("%s is not empty, and restore never overwrites a record: set PWOS_STATE_DIR to a new directory", dir)
	}
	return err
}

// roomIn returns the free space, in bytes, of the file system of dir.
func roomIn(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("find room for the backup: %w", err)
	}
	return int64(st.Bavail) * int64(st.Bsize), nil //nolint:unconvert // the fields' types differ between platforms
}

func (a *app) printRestored(made state.Restored) error {
	key, _, err := access.ParsePublicKey(made.HostKey)
	if err != nil {
		return err
	}
	o := view.Object(nil).Text("state_dir", made.StateDir).Text("instance", made.Instance).Integer("epoch", made.Epoch).
		Text("host_key", key.Fingerprint()).Boolean("fresh", made.Fresh).Integer("agents_held", int64(made.Held))
	t := new(view.Table)
	t.Row("state directory", view.Escaped(made.StateDir))
	t.Row("instance", made.Instance+", epoch "+strconv.FormatInt(made.Epoch, 10))
	t.Row("host key", key.Fingerprint())
	if made.Held > 0 {
		t.Row("agents held", strconv.Itoa(made.Held)+`: "pwos restore --here --agents" lets them start`)
	}
	if made.Fresh {
		t.Row("next", quote.Command("pwos", "auth", "trust", key.Fingerprint())+` where keys are asked for, then start the kernel`)
	}
	return a.PrintEither(o.Close(), t)
}
