package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/kernel/metrics"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsontype"
)

const (
	redactedText = `"[redacted]"` // replaces the value
	alsoMost     = 100
	alsoShortest = 4 // a shorter value, in bytes, is not searched in other entries
	memberMost   = 1024
)

// redaction is an entry without one of its members.
type redaction struct {
	seq    uint64
	member string
	done   bool // it was redacted earlier

	hash   journal.Hash  // of the entry in the chain
	domain schema.Domain // whose state the entry changed; "": none
	blob   string        // the blob that the member refers to, if the value is in one
	prompt string        // digest of the prompt that the member is, of which the journal never had the text

	request, outcome []byte   // without the member
	words            [][]byte // forms in which other entries may have the value
	plain            []byte   // the value as a blob has it
	also             []int64
	more             bool
}

// editOf returns the entry without the member, or an error that says why the member cannot be removed.
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
	e := &redaction{seq: seq, member: member, hash: record.Hash, also: []int64{}, request: bytes.Clone(record.Request), outcome: bytes.Clone(record.Outcome)}
	if e.prompt, err = s.promptOf(ctx, record, member); err != nil || e.prompt != "" {
		e.done = true
		return e, err
	}
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
	if e.blob = referred(value); e.blob != "" {
		return e, nil
	}
	e.words, e.plain = forms(value), plain(value)
	*part = bytes.Join([][]byte{(*part)[:start], (*part)[end:]}, []byte(redactedText))
	return e, e.decodes(record)
}

// promptOf returns the digest of the prompt that a member of an entry is, "" for another member. The entry is a Prompt.Submit or its end.
func (s *State) promptOf(ctx context.Context, line *journal.Record, member string) (string, error) {
	_, typ := schema.Peek(line.Request)
	begins := typ == schema.PromptSubmit.Type
	if member != "/request/data/text" || !begins && typ != schema.PromptSubmit.End.Type {
		return "", nil
	}
	if !begins {
		_, digest, err := submitted(line)
		return digest, err
	}
	reader := journal.NewReader(nil, s.Dir, journal.ReaderOptions{From: line.Seq + 1, Limit: s.Journal.Written})
	defer reader.Close() // read only
	for {
		next, err := reader.Next(ctx)
		if errors.Is(err, io.EOF) {
			return "", nil // it has no end: no text was kept
		}
		if err != nil {
			return "", err
		}
		if _, typ := schema.Peek(next.Request); typ != schema.PromptSubmit.End.Type {
			continue
		}
		if intent, digest, err := submitted(next); err != nil || uint64(intent) == line.Seq {
			return digest, err
		}
	}
}

// submitted returns which entry a Prompt.Submitted ends, and the digest of the prompt; "" if it failed.
func submitted(line *journal.Record) (intent int64, digest string, err error) {
	call, err := record.Recall(line)
	if err != nil {
		return 0, "", err
	}
	end := schema.EndOf(&call.Message)
	if end == nil {
		return 0, "", nil
	}
	if data, failed := end.Result(); failed == nil {
		if out, bad := schema.PromptSubmit.Output().Decode(data); bad == nil {
			digest = out.(*schema.PromptSubmitOutput).Digest
		}
	}
	return end.Intent, digest, nil
}

// forms returns the texts by which other entries with the value are found: as it was written, and, for a string, as this
// kernel would write it.
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

// plain returns the value as a blob has it: the text of a string, otherwise JSON.
func plain(value []byte) []byte {
	if value[0] == '"' {
		return jsontype.Unquote(value)
	}
	return bytes.Clone(value)
}

// referred returns the path of a BlobPointer, or "" for another value.
func referred(value []byte) string {
	start, end, ok := journal.Member(value, "/scheme")
	if !ok || string(value[start:end]) != `"file"` {
		return ""
	}
	if start, end, ok = journal.Member(value, "/path"); !ok || value[start] != '"' {
		return ""
	}
	return string(jsontype.Unquote(value[start:end]))
}

// mayBeRedacted returns an error for members that name a caller, a call or a permission: only content below the data of
// request and outcome may be removed.
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
	switch {
	case row.Kind == schema.KindQuery: // it has changed nothing
	case row.Ends():
		if said := strings.HasPrefix(rest, "outcome/data/") || rest == "outcome/data"; request && !said || !hasContent(row) {
			return kept("it says how the call ended")
		}
	case row == schema.SyscallRegister.Row():
		if rest != "code" && rest != "description" {
			return kept("it says what is registered")
		}
	case !hasContent(row):
		return kept("entries of " + typ + " say what the record and its authority rest on")
	case row.Domain == schema.Approval:
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

// hasContent reports whether entries of a row have content from callers, in addition to what the journal and its authority
// depend on.
func hasContent(row *schema.Syscall) bool {
	switch row.Domain {
	case schema.Audit, schema.Capability, schema.Budget:
		return false
	case schema.Kernel:
		return slices.Contains([]string{
			schema.SyscallEcho.Type, schema.SyscallInvoke.Type, schema.SyscallInvoke.End.Type, schema.SyscallComplete.Type, schema.HostToolUse.Type,
		}, row.Type)
	}
	return true
}

// decodes returns an error if the entry could not be read without the member.
func (e *redaction) decodes(line *journal.Record) error {
	now := *line
	now.Request, now.Outcome = e.request, e.outcome
	call, err := record.Recall(&now)
	if err == nil && call.Err == nil && call.Syscall.Kind == schema.KindCommand {
		if _, failed := call.Syscall.Output().Decode(call.Data); failed != nil {
			err = failed
		}
	}
	if err == nil {
		err = endDecodes(call)
	}
	if err != nil {
		return fault.AuditKept.New("%s of entry %d stays: the entry could not be read without it: %v", e.member, e.seq, err)
	}
	if call.Err == nil && call.Syscall.Kind == schema.KindCommand && !call.Repeated {
		e.domain = call.Syscall.Domain
	}
	return nil
}

// endDecodes returns the reason why the outcome that the end of an effect records cannot be read, or nil.
func endDecodes(call *kernel.Call) error {
	end := schema.EndOf(&call.Message)
	if end == nil {
		return nil
	}
	row, ok := schema.Lookup(end.Type)
	outcome, err := schema.DecodeOutcome(end.Outcome)
	if !ok || err != nil || outcome.Err != nil || outcome.Refs != nil {
		return err
	}
	if _, failed := row.Output().Decode(outcome.Data); failed != nil {
		return failed
	}
	return nil
}

// line returns the entry's line without the member.
func (e *redaction) line(record *journal.Record) ([]byte, error) {
	return record.With(e.request, e.outcome), nil
}

// trial is the state that the journal without the member results in, separate from the live one.
type trial struct {
	*State
	made   map[schema.Domain]record.Position
	reader *journal.Reader
}

// try rebuilds the state without the member, and records the entries that have the same value elsewhere. The caller closes
// the trial.
func (s *State) try(ctx context.Context, e *redaction) (*trial, error) {
	t := &trial{State: s.beside()}
	t.Keys, t.Metrics = idempotency.New(), metrics.New()
	if err := t.make(t.State); err != nil {
		return nil, err
	}
	parts := t.parts()
	t.made = make(map[schema.Domain]record.Position, len(parts))
	anchor, err := journal.ReadAnchor(nil, s.Dir)
	if err != nil {
		return nil, err
	}
	if anchor != nil {
		for name := range parts {
			t.made[name] = record.Position{Seq: anchor.Seq, Tick: anchor.Tick}
		}
		if err := LoadAnchor(ctx, s.Dir, anchor, parts); err != nil {
			return nil, err
		}
	} else {
		t.made[record.KeysPart] = record.Position{}
	}
	t.reader = journal.NewReader(nil, s.Dir, journal.ReaderOptions{From: oldest(t.made) + 1, Limit: s.Journal.Written, Edit: e.edit})
	if err := t.advance(ctx, e); err != nil {
		return nil, errors.Join(err, t.reader.Close())
	}
	return t, nil
}

// advance reads the entries that the journal has got since.
func (t *trial) advance(ctx context.Context, e *redaction) (err error) {
	defer func() {
		if p := recover(); p != nil {
			t.log.Warn("the state cannot be rebuilt", "without", e.member, "of", e.seq, "panic", p, "stack", string(debug.Stack()))
			err = fault.AuditKept.New("%s of entry %d stays: the state could not be rebuilt without it", e.member, e.seq)
		}
	}()
	err = record.Replay(ctx, t.reader, t.Domains, t.made, func(call *kernel.Call) {
		t.Keys.Recall(call)
		t.Metrics.Recall(call)
		t.Budgets.Record(call)
	})
	if err != nil {
		return fmt.Errorf("rebuild the state without %s of entry %d: %w", e.member, e.seq, err)
	}
	return nil
}

func (t *trial) close() error { return t.reader.Close() }

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
				e.also = append(e.also, int64(record.Seq))
			}
			break
		}
	}
	return nil
}
