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
	"github.com/promptware-os/pwos/internal/version"
	"github.com/promptware-os/pwos/journal/backup"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

func newBackup(a *app) *cobra.Command {
	var force bool
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
policy, directories of agents, what steps changed in files, blobs, and archived entries.

The file has everything that agents were told, with secrets sealed, so its mode is 0600. An
existing file is overwritten only with --force.

Exit status: 4 there is no journal, 8 FILE exists, 10 the journal is damaged.`,
		Example: `  pwos backup /backup/pwos-$(date +%F)
  pwos backup - | ssh elsewhere 'PWOS_STATE_DIR=~/pwos pwos restore -'`,
		Args: cli.Arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.backup(cmd.Context(), args[0], force)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "overwrite FILE")
	return cmd
}

func (a *app) backup(ctx context.Context, path string, force bool) error {
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
			return fault.UsageInvalid.New("a backup is binary and stdout is a terminal: name a FILE, or pipe stdout to a program").With("verb", "pwos backup")
		}
		_, _, err := backup.Write(ctx, a.Stdout, source)
		return err
	}
	return a.backupFile(ctx, path, force, source)
}

// backupFile writes the backup to path atomically.
func (a *app) backupFile(ctx context.Context, path string, force bool, source backup.Source) error {
	if _, err := os.Lstat(path); err == nil && !force {
		return fault.FileExists.New("%s exists: give another name, or --force to overwrite it", path)
	}
	out, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithStaticPermissions(0o600))
	if err != nil {
		return err
	}
	defer out.Cleanup()
	m, running, err := backup.Write(ctx, out, source)
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
	return a.printBackup(path, size, m, running)
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (a *app) printBackup(path string, size int64, m *backup.Manifest, running bool) error {
	o := view.Object(nil).Text("file", path).Integer("bytes", size).Integer("seq", m.Seq).Text("hash", m.Hash).
		Text("instance", m.Instance).Integer("epoch", m.Epoch).Integer("archived", m.Archived).Boolean("running", running)
	t := new(view.Table)
	t.Row("file", view.Escaped(path)+", "+strconv.FormatInt(size, 10)+" bytes")
	t.Row("record", "up to entry "+strconv.FormatInt(m.Seq, 10)+", "+m.Hash)
	if m.Archived > 0 {
		t.Row("archived", "entries up to "+strconv.FormatInt(m.Archived, 10)+" are not in it: keep the archive too")
	}
	t.Row("instance", m.Instance+", epoch "+strconv.FormatInt(m.Epoch, 10))
	t.Row("restore with", quote.Command("pwos", "restore", path)+`, with PWOS_STATE_DIR where it is to be`)
	return a.PrintEither(o.Close(), t)
}
