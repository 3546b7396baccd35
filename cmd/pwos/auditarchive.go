package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

func newAuditArchive(a *app) *cobra.Command {
	var before arg.Point
	cmd := &cobra.Command{
		Use:   "archive --before SEQ|TIME DIR",
		Short: "move the oldest part of the record elsewhere",
		Long: `archive moves the oldest segments of the journal to DIR: those whose entries are all
before entry SEQ, or older than AGE, such as 720h or 30d. A signed anchor with the whole
state as it was then stands in for them, so that a start needs only what follows. What
DIR holds is still part of the record: "pwos audit verify DIR" checks it, together with
the journal that goes on. Searches find what is in DIR for as long as it stays there.

Only whole segments are moved. One that entry SEQ, or a younger entry, is in stays; to
move all there is, give a SEQ beyond the last.

DIR is new, empty, or has what was archived of this journal before. It may be on another
file system, and is never inside the kernel's own directories. Until everything in it is
on disk and verified, nothing is removed: a crash at any point loses no entry.

Exit status: 0 also if there is nothing to move, 3 only the operator may, 8 DIR cannot be
the archive, 10 the journal is damaged.`,
		Example: `  pwos audit archive --before 720h /archive/pwos
  pwos audit archive --before 100000 /archive/pwos && pwos audit verify /archive/pwos`,
		Args: cli.Arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := archiveInput(&before, args[0])
			if err != nil {
				return cli.Usage(cmd, err)
			}
			return a.auditArchive(cmd.Context(), in)
		},
	}
	cmd.Flags().Var(cli.PointFlag(&before, 1), "before", "number of an entry, a time, or an age such as 720h or 30d: only what is older is moved")
	return cmd
}

// archiveInput returns the call's data for the arguments. Its errors are usage errors.
func archiveInput(before *arg.Point, dir string) (*schema.AuditArchiveInput, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if before.Seq == nil && before.Time == nil {
		return nil, errors.New("--before is missing: the number of an entry, or an age such as 720h or 30d")
	}
	return &schema.AuditArchiveInput{Directory: dir, BeforeSeq: before.Seq, BeforeTime: before.Time}, nil
}

func (a *app) auditArchive(ctx context.Context, in *schema.AuditArchiveInput) error {
	return a.WithKernel(ctx, 0, func(ctx context.Context, c *client.Client) error {
		data, err := schema.AuditArchive.Encode(in)
		if err != nil {
			return err
		}
		answer, err := c.Do(ctx, schema.Message{Kind: schema.KindCommand, Type: schema.AuditArchive.Type, Data: data})
		if err != nil {
			return err
		}
		if a.WantsJSON() {
			return a.PrintLine(answer.Data)
		}
		out, err := schema.AuditArchive.Decode(answer.Data)
		if err != nil {
			return err
		}
		if out.Segments == 0 {
			return a.PrintText("nothing to move: no segment of the journal has only entries from before")
		}
		journal, err := cli.JournalDir()
		if err != nil {
			return err
		}
		return a.Print(view.ArchiveTable(out, journal).Text())
	})
}

// sayArchived prints which entries are archived, since the answer may lack some of them.
func (a *app) sayArchived(archived *schema.Archived) { a.Say("%s", view.ArchivedText(archived)) }

// sayArchivedAfter prints which entries after seq are archived.
func (a *app) sayArchivedAfter(ctx context.Context, c *client.Client, seq int64) error {
	one := int64(1)
	page, err := auditPage(ctx, c, &schema.AuditLogInput{SinceSeq: &seq, Limit: &one})
	switch {
	case errors.Is(err, fault.Forbidden): // not an error: gaps in the numbers of the entries show what is missing
		return nil
	case err == nil && page.archived != nil:
		a.sayArchived(page.archived)
	}
	return err
}
