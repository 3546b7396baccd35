package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Beside is what has values of entries beside the journal, for redactions.
type Beside struct {
	Blobs  string // their directory
	Redact func(ctx context.Context, value []byte) (removed int, left []string, err error)

	Steps  string                                                           // the directory of the stores of steps
	Forget func(ctx context.Context, value []byte) (removed int, err error) // removes a value from them, and from prompts
	Prompt func(digest string) (removed bool, err error)                    // removes the text of a prompt
}

// Redact removes a member from an entry of the journal while no kernel runs: "[redacted]" replaces it in the line, and a
// later entry vouches for the old and the new hash. The order of the steps ensures that after a crash the journal, once it
// is opened again, is either unchanged or redacted:
//
//  1. Try the entry without the member: it must decode, and the state must be rebuilt from it.
//  2. Write a copy of the segment without it.
//  3. Delete the snapshots and the index, which may have the value.
//  4. Append the entry Audit.Redacted, and sync it.
//  5. Replace the segment with the copy.
//
// The next start rebuilds the state, the snapshots and the index from the journal. onBus returns the last entry that the
// cluster's bus has; nil: no cluster.
func (s *State) Redact(ctx context.Context, cfg *config.Config, seq uint64, member string, beside Beside, onBus func(context.Context) (uint64, error)) (out schema.AuditRedactOutput, err error) {
	here, err := journal.Locate(s.Dir)
	if err != nil {
		return out, err
	}
	if last := s.Self.Booted(); last != nil {
		if why := s.copied(last, here); why != "" {
			return out, copied(cfg.StateDir, why)
		}
	}
	e, err := s.editOf(ctx, seq, member)
	if err != nil {
		return out, err
	}
	out = e.output(onBus != nil)
	if !e.done && e.blob == "" {
		if onBus != nil {
			through, err := onBus(ctx)
			if err == nil {
				err = e.mustBeCopied(through)
			}
			if err != nil {
				return out, err
			}
		}
		if err := s.rewriteOffline(ctx, cfg, e, &out); err != nil {
			return out, err
		}
	}
	s.redactBeside(ctx, e, beside, &out)
	return out, nil
}

// rewriteOffline rewrites the line.
func (s *State) rewriteOffline(ctx context.Context, cfg *config.Config, e *redaction, out *schema.AuditRedactOutput) error {
	t, err := s.try(ctx, e)
	if err != nil {
		return err
	}
	if err := t.close(); err != nil {
		return err
	}
	out.Also, out.More = e.also, e.more
	rewrite, err := s.prepare(ctx, e, func(context.Context) error {
		_, err := s.Journal.EndSegment()
		return err
	})
	if err != nil {
		return err
	}
	if err := s.dropProjections(cfg); err != nil {
		return errors.Join(err, rewrite.Discard())
	}
	by, err := record.Vouch(s.Journal, cfg.Origin, s.Tick, e.voucher(rewrite))
	if err != nil {
		return err // the entry may be on disk: the next start continues from what it finds
	}
	out.By = int64(by)
	return rewrite.Commit(by, s.HostKey, time.Now().UnixMilli())
}

// output returns the answer as it is before anything is done.
func (e *redaction) output(cluster bool) schema.AuditRedactOutput {
	return schema.AuditRedactOutput{Seq: int64(e.seq), Member: e.member, Already: e.done, Also: e.also, Cluster: cluster, Left: []string{}}
}

// mustBeCopied returns an error if the bus does not have the entry: the copy sends lines as the journal has them, and a
// rewritten line would not fit the chain there.
func (e *redaction) mustBeCopied(through uint64) error {
	if through >= e.seq {
		return nil
	}
	return fault.JournalUncopied.New("the bus has the entries up to %d, and needs entry %d as it was appended: redact it once the bus has it", through, e.seq)
}

// voucher returns the data of the entry that vouches for the line.
func (e *redaction) voucher(w *journal.Rewrite) *schema.AuditRedactedInput {
	return &schema.AuditRedactedInput{Seq: int64(e.seq), Member: e.member, Old: w.Old.String(), New: w.New.String()}
}

// prepare writes the copy of the segment. If the entry is in the segment that is being written, it ends that first.
func (s *State) prepare(ctx context.Context, e *redaction, end func(context.Context) error) (*journal.Rewrite, error) {
	rewrite, err := journal.PrepareRewrite(ctx, nil, s.Dir, e.seq, e.line)
	if errors.Is(err, journal.ErrOpenSegment) {
		if err := end(ctx); err != nil {
			return nil, fmt.Errorf("end segment: %w", err)
		}
		rewrite, err = journal.PrepareRewrite(ctx, nil, s.Dir, e.seq, e.line)
	}
	return rewrite, err
}

// redactBeside removes the value from blobs and the stores of steps. The line is already rewritten, so an error only adds a note to look
// at the directory.
func (s *State) redactBeside(ctx context.Context, e *redaction, beside Beside, out *schema.AuditRedactOutput) {
	value := e.plain
	if e.blob != "" {
		var err error
		if value, err = beside.content(e.blob); errors.Is(err, fs.ErrNotExist) {
			out.Already = true
			return
		} else if err != nil {
			out.Left = append(out.Left, e.blob)
			return
		}
	}
	removed, left, err := beside.Redact(ctx, value)
	out.Blobs = int64(removed)
	out.Left = append(out.Left, left...)
	if err != nil {
		s.log.Warn("blobs were not looked through for a redacted value", "entry", e.seq, "error", err)
		out.Left = append(out.Left, beside.Blobs)
	}
	forgotten := 0
	if err = nil; len(value) >= alsoShortest {
		forgotten, err = beside.Forget(ctx, value)
	}
	if e.prompt != "" {
		removed, failed := beside.Prompt(e.prompt)
		if err = errors.Join(err, failed); removed {
			forgotten++
		}
	}
	out.Steps = int64(forgotten)
	if err != nil {
		s.log.Warn("stores of steps were not all looked through for a redacted value", "entry", e.seq, "error", err)
		out.Left = append(out.Left, beside.Steps)
	}
}

// content reads a blob that an entry refers to.
func (b *Beside) content(path string) ([]byte, error) {
	name, err := filepath.Rel(b.Blobs, path)
	if err != nil || !filepath.IsLocal(name) {
		return nil, fs.ErrNotExist // it belongs to another runtime directory
	}
	root, err := os.OpenRoot(b.Blobs)
	if err != nil {
		return nil, err
	}
	defer root.Close() // read only
	return root.ReadFile(name)
}

// dropProjections deletes the index and the snapshots, which the next start rebuilds.
func (s *State) dropProjections(cfg *config.Config) error {
	if err := s.projections.close(); err != nil {
		s.log.Warn("close projections", "error", err)
	}
	s.projections, s.Snapshots = nil, nil
	if err := os.RemoveAll(filepath.Join(cfg.StateDir, "projections")); err != nil {
		return fmt.Errorf("delete snapshots and index: %w", err)
	}
	return journal.OSFS{}.SyncDir(cfg.StateDir)
}
