package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/daemon/offline"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

func newAuditRedact(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "redact SEQ|STEP MEMBER|PATH",
		Short: "remove a secret from an entry of the record, or from what is kept of files",
		Long: `redact replaces a member of an entry by "[redacted]" in the journal. The chain keeps the
hash that the line had, and a new entry, Audit.Redacted, names the member and both hashes,
never the value; "pwos audit verify" accepts exactly that.

What was made of the value follows the record: a key that was set to it is "[redacted]",
and so is mail that was not taken yet. Snapshots and the index are deleted, and rebuilt.
Blobs that are the value are removed; others that contain it are listed. In the stores of steps
it is removed where it is the whole content of a file, and from programs, connections and
prompts. Member "text" of a Prompt.Submit is the prompt, which lies only there.

A running kernel does it beside its work: calls to the part of it that the entry belongs to
wait meanwhile. Otherwise the verb does it itself, in the state directory.

MEMBER is a JSON pointer into the line, such as /request/data/value or
/outcome/data/items/0. Without a slash in front it is below /request/data. Only content can
be redacted: members that say who did what, that other entries refer to, or that the state
cannot be rebuilt without, stay. The pointer is recorded: if a name in it is the secret,
redact the member around it. Of a member that refers to a blob, the blob is removed.

redact STEP PATH removes from the store of steps what a file had in it before and after a step,
such as claude:12, and since; of a directory, what the step's files below it had. Where other files
had the same content, it is gone too. The steps stay; an undo that needs such a content is refused
(steps.missing). Remove the secret from the file first, since a file that changes is stored again.
Git's objects are files too: below .git/objects.

The answer lists other entries that have the same value: redact those too. Backups, archives,
exports, a copy on a cluster's bus and the directories of agents keep the value: change
the secret in any case.

Exit status: 1 the member must stay, 3 only the operator may, 4 no such entry, member, step or file,
8 the running kernel has another record.`,
		Example: `  pwos audit redact 120 value
  pwos audit redact 120 /request/data/payload/password
  pwos audit redact 121 /outcome/data/body
  pwos audit redact claude:12 config.yml`,
		Args:              cli.Arguments(cobra.ExactArgs(2)),
		ValidArgsFunction: completeSteps(a, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.Contains(args[0], ":") {
				return a.redactStep(cmd, args[0], args[1])
			}
			seq, err := arg.ParseEntry(args[0], 1)
			if err != nil {
				return cli.Usage(cmd, err)
			}
			member := args[1]
			if member == "" {
				return cli.Usage(cmd, errors.New("MEMBER is empty: name it by a JSON pointer, such as /request/data/value"))
			}
			if !strings.HasPrefix(member, "/") {
				member = "/request/data/" + member
			}
			return a.auditRedact(cmd.Context(), uint64(seq), member)
		},
	}
}

// redactStep removes what a file had in the store of steps.
func (a *app) redactStep(cmd *cobra.Command, step, path string) error {
	of, err := arg.ParseSteps(step)
	if err == nil && of.From != of.To {
		err = fmt.Errorf("%q names several steps: give one; what the file had since goes too", step)
	}
	if err != nil {
		return cli.Usage(cmd, err)
	}
	in := &schema.StepRedactInput{Agent: of.Agent, Step: of.From}
	if in.Path, err = realPath(path); err != nil {
		return err
	}
	return a.WithKernel(cmd.Context(), 0, func(ctx context.Context, c *client.Client) error {
		out, err := cli.InvokeAs(ctx, c, schema.StepRedact, in)
		if err != nil {
			return err
		}
		data, err := schema.Marshal(&out)
		if err != nil {
			return err
		}
		return a.PrintEither(data, view.StepRedactTable(&out))
	})
}

// auditRedact asks the running kernel to redact the entry, and sends the entry's hash to verify that this kernel writes the journal
// in the state directory. If no such kernel runs, auditRedact redacts the entry itself.
func (a *app) auditRedact(ctx context.Context, seq uint64, member string) error {
	hash, err := a.entryHash(ctx, seq)
	if errors.Is(err, fault.JournalArchived) {
		return err
	}
	if err == nil {
		in := &schema.AuditRedactInput{Seq: int64(seq), Member: member, Hash: &hash}
		err = a.With(ctx, 0, a.DialRunning, func(ctx context.Context, c *client.Client) error {
			out, err := cli.InvokeAs(ctx, c, schema.AuditRedact, in)
			if err != nil {
				return err
			}
			return a.printRedacted(&out)
		})
		// A kernel with another journal may not have the entry.
		if !errors.Is(err, fault.DaemonNotRunning) && !errors.Is(err, fault.AuditInUse) && !errors.Is(err, fault.AuditNotFound) {
			return err
		}
	}
	limited, cancel := a.Bound(ctx, 0)
	defer cancel()
	out, failed := offline.Redact(limited, nil, os.Getenv, a.Stderr, seq, member)
	switch {
	case failed == nil:
		return a.printRedacted(&out)
	case errors.Is(failed, fault.AuditInUse) && errors.Is(err, io.EOF):
		return fault.AuditNotFound.New("there is no entry %d", seq)
	case errors.Is(failed, fault.AuditInUse) && errors.Is(err, fault.AuditInUse):
		return err // it has more detail
	}
	return failed
}

// entryHash reads the hash of an entry from the journal in the state directory.
func (a *app) entryHash(ctx context.Context, seq uint64) (hash string, err error) {
	dir, err := cli.JournalDir()
	if err != nil {
		return "", err
	}
	reader := journal.NewReader(nil, dir, journal.ReaderOptions{From: seq})
	defer func() { err = errors.Join(err, reader.Close()) }()
	record, err := reader.Next(ctx)
	if gone, archived := errors.AsType[*journal.ArchivedError](err); archived {
		return "", fault.JournalArchived.New("entry %d is archived in %s: an archive is never rewritten", seq, gone.Anchor.Archive)
	}
	if err != nil {
		return "", err
	}
	return record.Hash.String(), nil
}

// printRedacted prints the result of a redaction.
func (a *app) printRedacted(out *schema.AuditRedactOutput) error {
	data, err := schema.Marshal(out)
	if err != nil {
		return err
	}
	return a.PrintEither(data, view.RedactTable(out))
}
