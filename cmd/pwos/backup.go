package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/daemon/offline"
	"github.com/promptware-os/pwos/internal/version"
	"github.com/promptware-os/pwos/journal/backup"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

func newBackup(a *app) *cobra.Command {
	var b backupOptions
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "copy the kernel's record into one file",
		Long: `backup writes the record up to the last entry on disk into FILE, or to stdout for "-".
"pwos restore FILE" makes a kernel from it elsewhere. backup verifies the record
first. It reads only files, so it needs no kernel and does not disturb a running one.

It contains the journal with its checkpoints and redactions, the anchor with its state if
older entries were archived, and the public host key; a manifest with the SHA-256 of each
file is signed with the host key. It does not contain: the private host key, snapshots and
the index (rebuilt at the next start), the configuration with authorized_keys and the
policy, directories of agents, blobs, archived entries, and without --steps what steps changed
in files.

--steps takes along the stores of steps, as they are at one moment, and the prompts of users:
"pwos diff" and "pwos undo" work on the restored kernel, for directories at the same path. What
looks secret in files is sealed there with a key, which is in the backup only under a
passphrase. It is asked for at a terminal, or the first line of --passphrase-file. Without a
passphrase the key is left out, and an undo that needs such contents says that they are missing.
Copies of directories that agents work on (run --review) are not in it.

The file has everything that agents were told, with secrets sealed, so its mode is 0600. An
existing file is overwritten only with --force.

Exit status: 4 there is no journal, 8 FILE exists, 10 the journal is damaged.`,
		Example: `  pwos backup /backup/pwos-$(date +%F)
  pwos backup --steps --passphrase-file ~/.backup-passphrase /backup/pwos-$(date +%F)
  pwos backup - | ssh elsewhere 'PWOS_STATE_DIR=~/pwos pwos restore -'`,
		Args: cli.Arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if b.passphraseFile != "" && !b.steps {
				return cli.Usage(cmd, errors.New("--passphrase-file is for the key of steps: add --steps"))
			}
			return a.backup(cmd.Context(), args[0], &b)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&b.force, "force", false, "overwrite FILE")
	flags.BoolVar(&b.steps, "steps", false, "take along what steps changed in files")
	flags.StringVar(&b.passphraseFile, "passphrase-file", "", "the passphrase of the key of steps is the first line of this file")
	return cmd
}

// backupOptions are the flags of backup, and what it says of steps.
type backupOptions struct {
	force, steps   bool
	passphraseFile string
	made           offline.StepsBackup
}

func (a *app) backup(ctx context.Context, path string, b *backupOptions) error {
	ctx, cancel := a.Bound(ctx, 0)
	defer cancel()
	dir, err := cli.JournalDir()
	if err != nil {
		return err
	}
	stateDir := filepath.Dir(dir)
	key, err := access.ReadHostKey(access.HostKeyFile(stateDir))
	if errors.Is(err, os.ErrNotExist) {
		return fault.PlaceNotThere.New("no kernel has been in %s: set PWOS_STATE_DIR to its state directory", stateDir)
	}
	if err != nil {
		return err
	}
	source := backup.Source{Dir: stateDir, Key: key, Version: version.Build(), Now: time.Now}
	if path == "-" {
		if a.StdoutTerminal() {
			return fault.UsageInvalid.New("a backup is binary and stdout is a terminal: name a FILE, or pipe stdout to a program").With("verb", backupVerb)
		}
		if _, _, err := a.writeBackup(ctx, a.Stdout, source, b); err != nil {
			return err
		}
		a.sayKey(b)
		return nil
	}
	return a.backupFile(ctx, path, b, source)
}

func (a *app) writeBackup(ctx context.Context, w io.Writer, source backup.Source, b *backupOptions) (m *backup.Manifest, running bool, err error) {
	if !b.steps {
		return backup.Write(ctx, w, source)
	}
	ask, err := a.passphrase(backupVerb, b.passphraseFile)
	if err != nil {
		return nil, false, err
	}
	m, running, b.made, err = offline.Backup(ctx, w, source, ask)
	return m, running, err
}

// sayKey says that the key of steps was left out.
func (a *app) sayKey(b *backupOptions) {
	if b.made.Sealed && !b.made.Key {
		a.Say("what looks secret in files cannot be undone after a restore, since its key is not in the backup: --passphrase-file takes it along")
	}
}

// backupFile writes the backup to path atomically.
func (a *app) backupFile(ctx context.Context, path string, b *backupOptions, source backup.Source) error {
	if _, err := os.Lstat(path); err == nil && !b.force {
		return fault.FileExists.New("%s exists: give another name, or --force to overwrite it", path)
	}
	out, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithStaticPermissions(0o600))
	if err != nil {
		return err
	}
	defer out.Cleanup()
	m, running, err := a.writeBackup(ctx, out, source, b)
	if err != nil {
		return err
	}
	size, err := out.Seek(0, io.SeekCurrent)
	if err == nil {
		err = out.CloseAtomicallyReplace()
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return err
	}
	a.sayKey(b)
	return a.printBackup(path, size, m, running, b)
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (a *app) printBackup(path string, size int64, m *backup.Manifest, running bool, b *backupOptions) error {
	o := view.Object(nil).Text("file", path).Integer("bytes", size).Integer("seq", m.Seq).Text("hash", m.Hash).
		Text("instance", m.Instance).Integer("epoch", m.Epoch).Integer("archived", m.Archived).Boolean("running", running)
	if b.steps {
		o = o.Integer("stores", int64(b.made.Stores)).Boolean("sealed", b.made.Sealed).Boolean("key", b.made.Key)
	}
	t := new(view.Table)
	t.Row("file", view.Escaped(path)+", "+strconv.FormatInt(size, 10)+" bytes")
	t.Row("record", "up to entry "+strconv.FormatInt(m.Seq, 10)+", "+m.Hash)
	if m.Archived > 0 {
		t.Row("archived", "entries up to "+strconv.FormatInt(m.Archived, 10)+" are not in it: keep the archive too")
	}
	if b.steps {
		t.Row("steps", cli.Counted(int64(b.made.Stores), "store"))
	}
	t.Row("instance", m.Instance+", epoch "+strconv.FormatInt(m.Epoch, 10))
	t.Row("restore with", quote.Command("pwos", "restore", path)+`, with PWOS_STATE_DIR where it is to be`)
	return a.PrintEither(o.Close(), t)
}
