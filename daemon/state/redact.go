package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/kernel/metrics"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// Redacted is what Redact has done to an entry.
type Redacted struct {
	Seq     uint64
	Member  string   // as a JSON pointer into the line
	By      uint64   // the entry that vouches for it; 0 if the member was redacted before
	Also    []uint64 // entries that have the same value elsewhere, ascending
	More    bool     // there are more of them than Also lists
	Cluster bool     // a copy of the journal on the cluster's bus keeps the value
}

const (
	redactedText = `"[redacted]"` // takes the value's place
	alsoMost     = 100
	alsoShortest = 4 // bytes of a value whose other occurrences are worth a list
	memberMost   = 1024
)

// Redact removes a member from an entry of the journal: the line gets "[redacted]" in its place, and
// a later entry vouches for the old and the new hash. In this order, so that a crash leaves the
// record as it was, or as it is to be once the journal is opened again:
//
//  1. The entry without the member is tried: it decodes, and the state can be rebuilt from it.
//  2. A copy of the segment without it is written.
//  3. Snapshots and the index, which may have the value, are deleted.
//  4. The entry Audit.Redacted is appended and synced.
//  5. The copy takes the segment's place.
//
// The next start makes the state, the snapshots and the index from the journal as it is then.
func (s *State) Redact(ctx context.Context, cfg *config.Config, seq uint64, member string) (Redacted, error) {
	r := Redacted{Seq: seq, Member: member, Cluster: cfg.Cluster.Name != ""}
	here, err := journal.Locate(s.Dir)
	if err != nil {
		return r, err
	}
	if last := s.Self.Booted(); last != nil {
		if why := s.copied(last, here); why != "" {
			return r, copied(cfg.StateDir, why)
		}
	}
	e, err := s.editOf(ctx, seq, member)
	if err != nil || e.done {
		return r, err
	}
	if err := s.try(ctx, e); err != nil {
		return r, err
	}
	r.Also, r.More = e.also, e.more
	rewrite, err := s.prepare(ctx, e)
	if err != nil {
		return r, err
	}
	if err := s.dropProjections(cfg); err != nil {
		return r, errors.Join(err, rewrite.Discard())
	}
	in := &schema.AuditRedactedInput{Seq: int64(seq), Member: member, Old: rewrite.Old.String(), New: rewrite.New.String()}
	if r.By, err = actors.Vouch(s.Journal, cfg.Origin, s.Tick, in); err != nil {
		return r, err // whether the entry is on disk is unknown: the next start removes the copy
	}
	return r, rewrite.Commit(r.By, s.HostKey, time.Now().UnixMilli())
}

// prepare makes the copy of the segment; the one that is written to is ended for that.
func (s *State) prepare(ctx context.Context, e *redaction) (*journal.Rewrite, error) {
	rewrite, err := journal.PrepareRewrite(ctx, nil, s.Dir, e.seq, e.line)
	if errors.Is(err, journal.ErrOpenSegment) {
		if _, err := s.Journal.EndSegment(); err != nil {
			return nil, fmt.Errorf("end segment: %w", err)
		}
		rewrite, err = journal.PrepareRewrite(ctx, nil, s.Dir, e.seq, e.line)
	}
	return rewrite, err
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

// redaction is an entry without one of its members.
type redaction struct {
	seq    uint64
	member string
	done   bool // it was redacted before

	request, outcome []byte   // without the member
	words            [][]byte // forms in which the value may be elsewhere
	also             []uint64
	more             bool
}

// editOf makes the entry without the member, or says why it cannot be.
func (s *State) editOf(ctx context.Context, seq uint64, member string) (*redaction, error) {
	reader := journal.NewReader(nil, s.Dir, journal.ReaderOptions{From: seq, Limit: s.Journal.Written})
	defer reader.Close() // read only
	record, err := reader.Next(ctx)
	if errors.Is(err, io.EOF) || err == nil && record.Seq != seq {
		return nil, fault.AuditNotFound.New("there is no entry %d: the last is %d", seq, s.Journal.Written())
	}
	if archived, ok := errors.AsType[*journal.ArchivedError](err); ok {
		return nil, fault.JournalArchived.New("entry %d is archived in %s: an archive is never rewritten", seq, archived.Anchor.Archive).Wrap(err)
	}
	if err != nil {
		return nil, err
	}
	e := &redaction{seq: seq, member: member, request: bytes.Clone(record.Request), outcome: bytes.Clone(record.Outcome)}
	if err := mayBeRedacted(record, member); err != nil {
		return nil, err
	}
	part, pointer := &e.request, strings.TrimPrefix(member, "/request")
	if pointer == member {
		part, pointer = &e.outcome, strings.TrimPrefix(member, "/outcome")
	}
	start, end, ok := journal.Member(*part, pointer)
	if !ok {
		return nil, fault.AuditNoMember.New("entry %d has no member %s", seq, member)
	}
	value := (*part)[start:end]
	if e.done = string(value) == redactedText; e.done {
		return e, nil
	}
	e.words = forms(value)
	*part = bytes.Join([][]byte{(*part)[:start], (*part)[end:]}, []byte(redactedText))
	return e, e.decodes(record)
}

// forms are the texts of a value by which other entries that have it are found: as it was written,
// and a string as this kernel would write it.
func forms(value []byte) (all [][]byte) {
	if value[0] == '"' {
		again := schema.AppendString(nil, string(jsontype.Unquote(value)))
		if again = again[1 : len(again)-1]; len(again) >= alsoShortest {
			all = append(all, again)
		}
		value = value[1 : len(value)-1]
	}
	if len(value) >= alsoShortest {
		all = append(all, bytes.Clone(value))
	}
	return all
}

// mayBeRedacted refuses members that say who did what, or what somebody may do: only content below
// the data of request and outcome may go.
func mayBeRedacted(record *journal.Record, member string) error {
	kept := func(why string) error {
		return fault.AuditKept.New("%s of entry %d stays: %s", member, record.Seq, why)
	}
	if len(member) > memberMost {
		return fault.AuditKept.New("the pointer is longer than %d bytes, and the record would have it: name a member around it", memberMost)
	}
	_, typ := schema.Peek(record.Request)
	row, known := schema.Lookup(typ)
	if !known {
		return kept("this kernel does not know " + typ)
	}
	rest, request := strings.CutPrefix(member, "/request/data/")
	if !request {
		var outcome bool
		if rest, outcome = strings.CutPrefix(member, "/outcome/data/"); !outcome {
			return kept("only what is below /request/data or /outcome/data can be redacted")
		}
	}
	switch row.Domain {
	case schema.Kernel, schema.Audit, schema.Capability, schema.Budget:
		return kept("entries of " + typ + " say what the record and its authority rest on")
	case schema.Approval:
		if rest != "data" && !strings.HasPrefix(rest, "data/") && rest != "why" {
			return kept("it says what was approved, and by whom")
		}
	}
	name, _, _ := strings.Cut(rest, "/")
	switch {
	case name == "capabilities", name == "budget":
		return kept("it says what a process may do")
	case name == "key", name == "id", strings.HasSuffix(name, "_id"), strings.HasSuffix(name, "Id"):
		return kept("other entries refer to it")
	}
	return nil
}

// decodes refuses an entry that could not be read any more without the member.
func (e *redaction) decodes(record *journal.Record) error {
	now := *record
	now.Request, now.Outcome = e.request, e.outcome
	call, err := actors.Recall(&now)
	if err == nil && call.Err == nil && call.Syscall.Kind == schema.KindCommand {
		if _, failed := call.Syscall.Output().Decode(call.Data); failed != nil {
			err = failed
		}
	}
	if err != nil {
		return fault.AuditKept.New("%s of entry %d stays: the entry could not be read without it: %v", e.member, e.seq, err)
	}
	return nil
}

// line is the entry's line without the member.
func (e *redaction) line(record *journal.Record) ([]byte, error) {
	return record.With(e.request, e.outcome), nil
}

// try rebuilds the state from the journal without the member, beside the one that was made with it,
// and notes the entries that have the same value elsewhere.
func (s *State) try(ctx context.Context, e *redaction) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Warn("the state cannot be rebuilt", "without", e.member, "of", e.seq, "panic", p, "stack", string(debug.Stack()))
			err = fault.AuditKept.New("%s of entry %d stays: the state could not be rebuilt without it", e.member, e.seq)
		}
	}()
	m := s.beside()
	m.Keys, m.Metrics = idempotency.New(), metrics.New()
	if err := m.make(m); err != nil {
		return err
	}
	parts := m.parts()
	made := make(map[schema.Domain]actors.Position, len(parts))
	anchor, err := journal.ReadAnchor(nil, s.Dir)
	if err != nil {
		return err
	}
	if anchor != nil {
		for name := range parts {
			made[name] = actors.Position{Seq: anchor.Seq, Tick: anchor.Tick}
		}
		if err := LoadAnchor(ctx, s.Dir, anchor, parts); err != nil {
			return err
		}
	} else {
		made[actors.KeysPart] = actors.Position{}
	}
	reader := journal.NewReader(nil, s.Dir, journal.ReaderOptions{From: oldest(made) + 1, Limit: s.Journal.Written, Edit: e.edit})
	err = actors.Replay(ctx, reader, m.Domains, made, func(call *kernel.Call) {
		m.Keys.Recall(call)
		m.Metrics.Recall(call)
		m.Budgets.Record(call)
	})
	if err = errors.Join(err, reader.Close()); err != nil {
		return fmt.Errorf("rebuild the state without %s of entry %d: %w", e.member, e.seq, err)
	}
	return nil
}

// edit implements journal.ReaderOptions.Edit.
func (e *redaction) edit(record *journal.Record) error {
	if record.Seq == e.seq {
		record.Request, record.Outcome = e.request, e.outcome
	}
	for _, word := range e.words {
		if bytes.Contains(record.Request, word) || bytes.Contains(record.Outcome, word) {
			if len(e.also) == alsoMost {
				e.more = true
			} else {
				e.also = append(e.also, record.Seq)
			}
			break
		}
	}
	return nil
}
