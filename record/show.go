package record

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/index"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// Bounds of an Audit.Show.
const (
	maxCaused = 20
	maxTokens = 16 // of a chain of granters
	maxSteps  = 64 // entries before a call that are searched for its steps
)

// showing has the state of one Audit.Show.
type showing struct {
	*View
	Extent
	call  *kernel.Call
	reach func(pid int64) bool
	out   schema.AuditShowOutput

	parts      []journal.Part  // available archives
	missing    *journal.Anchor // of the entries whose archive is not available; nil: none
	unreadable map[string]bool // archives that were available and could not be read
}

// Show implements audit.Journal.
func (v *View) Show(ctx context.Context, call *kernel.Call, in *schema.AuditShowInput, reach func(int64) bool) (*schema.AuditShowOutput, error) {
	now, err := v.Look(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := v.Journal.Sync(); err != nil { // so that the proof of every released answer is found
		return nil, Unavailable()
	}
	s := &showing{View: v, Extent: now, call: call, reach: reach}
	record, err := s.subject(ctx, in)
	if err != nil {
		return nil, err
	}
	if err := s.show(ctx, record, in.Effects == nil || *in.Effects); err != nil {
		return nil, err
	}
	s.out.Archived = archivedBy(s.missing, call.PID)
	return &s.out, nil
}

// subject returns the record to show.
func (s *showing) subject(ctx context.Context, in *schema.AuditShowInput) (*journal.Record, error) {
	if in.Key != nil {
		key := strings.TrimPrefix(*in.Key, "/")
		f := index.Filter{Key: key, Origin: s.call.Origin}
		record, err := s.latest(ctx, f, s.Head, func(r *journal.Record) bool {
			return r.Origin == f.Origin && keyOf(r) == key && succeeded(r)
		})
		if err != nil || record != nil {
			return record, s.visible(record, err)
		}
		if s.missing != nil {
			return nil, s.keyArchived(key)
		}
		return nil, fault.AuditNotFound.New("no command in the record has changed the key %s", fault.Clip(key)).
			WithFix("Memory.List shows the keys that there are").With("key", fault.Clip(key))
	}
	seq := uint64(*in.Seq)
	if seq > s.Head {
		return nil, fault.AuditNotFound.New("the record has no entry %d: the last one is %d", seq, s.Head).With("seq", fmt.Sprint(seq))
	}
	record, err := s.at(ctx, seq)
	if err := s.visible(record, err); err != nil {
		return nil, err
	}
	call, err := callOf(record)
	if err != nil {
		return nil, fmt.Errorf("read entry %d: %w", seq, err)
	}
	if !call.Intends() || s.Unended[seq] != "" {
		return record, nil
	}
	end, err := s.earliest(ctx, index.Filter{ID: call.Message.Meta.ID}, seq+1, func(r *journal.Record) bool {
		msg, invalid := schema.Decode(r.Request, schema.OsMessage)
		if invalid != nil {
			return false
		}
		end := schema.EndOf(&msg)
		return end != nil && end.Intent == int64(seq)
	})
	if err == nil && end == nil {
		err = fmt.Errorf("read entry %d: its end is missing", seq)
	}
	return end, err
}

// keyArchived returns the error for a key that was last changed by an entry in an archive that is not available.
func (s *showing) keyArchived(key string) error {
	where := "archived"
	if s.call.PID == kernel.Operator {
		where = "archived in " + s.missing.Archive
	}
	return fault.JournalArchived.New("no command after entry %d has changed the key %s: entries 1 to %d are %s", s.missing.Seq, fault.Clip(key), s.missing.Seq, where).
		With("key", fault.Clip(key))
}

// visible returns an error for a record of a process that the caller may not see.
func (s *showing) visible(record *journal.Record, err error) error {
	if err != nil || s.reach(ownerOf(record)) {
		return err
	}
	return fault.CapabilityNotYours.New("pid %d may not see entry %d: it is of another process, which does not descend from it", s.call.PID, record.Seq).
		WithFix("Audit.Log shows the entries that you may see").With("seq", fmt.Sprint(record.Seq))
}

// show fills in the answer.
func (s *showing) show(ctx context.Context, record *journal.Record, effects bool) error {
	row, err := s.row(ctx, record)
	if err != nil {
		return err
	}
	out := &s.out
	out.Entry, out.Origin, out.Conn = *row, record.Origin, record.Conn
	out.Proof = schema.ShownProof{Seq: row.Seq, Hash: record.Hash.String(), Prev: record.Prev.String()}
	cp, ok, err := journal.Covering(s.Files, s.Dir, record.Seq)
	if err != nil {
		return fmt.Errorf("read checkpoints: %w", err)
	}
	if ok {
		out.Proof.Checkpoint = &schema.ShownCheckpoint{Seq: int64(cp.Seq), Time: cp.Time, Key: cp.Key}
	}
	if err := s.verdict(record); err != nil {
		return err
	}
	begun := row.Seq
	if row.Intent != 0 {
		begun = row.Intent
	}
	if err := s.caller(ctx, row.PID, uint64(begun)); err != nil {
		return err
	}
	if err := s.cause(ctx, uint64(begun)); err != nil || !effects {
		return err
	}
	return s.effects(ctx, uint64(begun))
}

// verdict adds the rule or approval that decided the call.
func (s *showing) verdict(record *journal.Record) error {
	outcome, invalid := schema.DecodeOutcome(record.Outcome)
	if invalid != nil {
		return fmt.Errorf("read entry %d: %w", record.Seq, invalid)
	}
	s.out.Repeats = int64(outcome.Repeats)
	if let := outcome.Let; let != nil {
		s.out.Approval = &schema.ShownApproval{
			Approval: let.Approval, Rule: let.Rule, Policy: let.Policy, Exhausted: let.Exhausted, Advisory: let.Advisory,
		}
	}
	if f := outcome.Err; f != nil && f.Detail("rule") != "" {
		s.out.Rule = &schema.ShownRule{Rule: f.Detail("rule"), Policy: f.Detail("policy")}
		if s.call.PID == kernel.Operator {
			s.out.Rule.At = f.Detail("at")
		}
	}
	return nil
}

// caller adds which process called, what created it, and which tokens it had before an entry.
func (s *showing) caller(ctx context.Context, pid int64, seq uint64) error {
	for up := pid; up != kernel.Operator && s.reach(up); {
		p := s.Processes.Process(up)
		if p == nil {
			break
		}
		s.out.Processes = append(s.out.Processes, schema.ShownProcess{PID: up, AgentID: p.AgentID, Intent: p.Intent})
		if p.ParentPID >= up { // a parent is older than its child
			break
		}
		up = p.ParentPID
	}
	if pid == kernel.Operator {
		return nil
	}
	if err := s.tokens(ctx, pid, seq-1); err != nil {
		return err
	}
	endowed, err := s.earliest(ctx, index.Filter{Holder: &pid, Type: schema.CapabilityEndow.Type}, 1, func(r *journal.Record) bool {
		_, typ := schema.Peek(r.Request)
		return typ == schema.CapabilityEndow.Type && holds(r, pid)
	})
	if err != nil || endowed == nil {
		return err
	}
	msg, invalid := schema.Decode(endowed.Request, schema.OsMessage)
	if invalid != nil || msg.Meta.Causation == "" {
		return nil
	}
	return s.relate(ctx, schema.RelationSpawned, named{id: msg.Meta.Causation, conn: endowed.Conn}, endowed.Seq)
}

// holds reports whether a record changes the token of a process.
func holds(r *journal.Record, pid int64) bool {
	_, typ := schema.Peek(r.Request)
	if row, ok := schema.Lookup(typ); ok && row.Domain != schema.Capability { // nearly all records need not be decoded
		return false
	}
	msg, invalid := schema.Decode(r.Request, schema.OsMessage)
	return invalid == nil && slices.Contains(schema.HoldersOf(&msg, r.Outcome), pid)
}

// tokens collects the tokens of a process, and of those that granted them, as of an entry.
func (s *showing) tokens(ctx context.Context, pid int64, seq uint64) error {
	asked := map[int64]bool{kernel.Operator: true}
	for next := []int64{pid}; len(next) > 0 && len(s.out.Authority) < maxTokens; next = next[1:] {
		holder := next[0]
		if asked[holder] || !s.reach(holder) {
			continue
		}
		asked[holder] = true
		record, err := s.latest(ctx, index.Filter{Holder: &holder}, seq, func(r *journal.Record) bool { return holds(r, holder) })
		if err != nil {
			return err
		}
		if record == nil {
			continue
		}
		shown, err := tokenOf(record, holder)
		if err != nil {
			return err
		}
		s.out.Authority = append(s.out.Authority, shown)
		if shown.Token != nil {
			next = append(next, shown.Token.GrantedBy)
			for i := range shown.Token.Grants {
				next = append(next, shown.Token.Grants[i].GrantedBy)
			}
		}
	}
	return nil
}

// tokenOf returns the token of a process that a record created or removed.
func tokenOf(record *journal.Record, pid int64) (schema.ShownToken, error) {
	_, typ := schema.Peek(record.Request)
	shown := schema.ShownToken{PID: pid, Seq: int64(record.Seq), Type: typ, By: record.PID}
	switch typ {
	case schema.CapabilityGrant.Type, schema.CapabilityGrantDefault.Type, schema.CapabilityEndow.Type:
	default:
		return shown, nil
	}
	outcome, invalid := schema.DecodeOutcome(record.Outcome)
	if invalid != nil {
		return shown, fmt.Errorf("read entry %d: %w", record.Seq, invalid)
	}
	out, invalid := schema.TypeOf[schema.GrantOutput]().Decode(outcome.Data)
	if invalid != nil {
		return shown, fmt.Errorf("read entry %d: %w", record.Seq, invalid)
	}
	shown.Token = &out.(*schema.GrantOutput).Token
	if typ == schema.CapabilityEndow.Type { // the kernel's step, of a spawn
		shown.By = shown.Token.GrantedBy
	}
	return shown, nil
}

// cause adds the call that caused the shown one: what the kernel knows, then what the message claims.
func (s *showing) cause(ctx context.Context, begun uint64) error {
	e := &s.out.Entry
	known := named{id: string(e.Causation), conn: s.out.Conn, pid: e.PID}
	if e.Claimed {
		known.id = ""
	}
	mail := mailOf(e)
	if mail != nil {
		known = named{id: mail.Causation, sender: mail}
	}
	s.out.CauseID = known.id
	if known.id != "" && known.id != e.ID && (mail == nil || mail.SenderKernel == "") {
		if err := s.relate(ctx, schema.RelationCause, known, uint64(e.Seq)); err != nil {
			return err
		}
	}
	if !e.Claimed {
		return nil
	}
	claim := string(e.Causation)
	if s.out.CauseID == "" {
		s.out.CauseID = claim
	}
	if claim == e.ID {
		return nil
	}
	fits := s.calling(named{id: claim})
	record, err := s.latest(ctx, index.Filter{ID: claim}, begun-1, fits)
	if err != nil {
		return err
	}
	if record != nil {
		return s.add(ctx, schema.RelatedCall{Relation: schema.RelationCause, Claimed: true}, record)
	}
	record, err = s.earliest(ctx, index.Filter{ID: claim}, begun+1, fits)
	if err == nil && record != nil && s.reach(ownerOf(record)) {
		s.out.CauseLater = int64(record.Seq)
	}
	return err
}

// named describes a call that the kernel knows to be a cause. Clients choose the ids of messages, and may choose one that was
// used before, so that the id alone does not identify the call.
type named struct {
	id     string
	conn   string              // probably its connection, since it is that of its steps; "": not known
	pid    int64               // probably its process
	sender *schema.MailMessage // that the call has sent, or nil
}

// calling returns a function that reports whether a record has the row of the call.
func (s *showing) calling(n named) func(*journal.Record) bool {
	return func(r *journal.Record) bool {
		if !mentions(r, n.id) {
			return false
		}
		return s.isRow(r, func(e *schema.AuditEntry) bool {
			return e.ID == n.id && (n.sender == nil || e.PID == n.sender.SenderPID && (e.Type == schema.SyscallSendMsg.Type || e.Type == schema.IPCBroadcast.Type))
		})
	}
}

// relate adds the call that is nearest to an entry: preferably one of its connection, then one of its process.
func (s *showing) relate(ctx context.Context, relation string, n named, seq uint64) error {
	fits := s.calling(n)
	likely := []func(*journal.Record) bool{fits}
	if n.sender == nil {
		likely = []func(*journal.Record) bool{
			func(r *journal.Record) bool { return r.Conn == n.conn && fits(r) },
			func(r *journal.Record) bool { return r.PID == n.pid && fits(r) },
			fits,
		}
		if strings.HasPrefix(n.conn, "k-") { // other calls of another kernel are in its own record
			likely = likely[:1]
		}
	}
	for _, fits := range likely {
		record, err := s.called(ctx, n, fits, seq)
		if err != nil {
			return err
		}
		if record != nil {
			return s.add(ctx, schema.RelatedCall{Relation: relation}, record)
		}
	}
	return nil
}

// add adds the row of a record, if the caller may see it.
func (s *showing) add(ctx context.Context, related schema.RelatedCall, record *journal.Record) error {
	if !s.reach(ownerOf(record)) {
		return nil
	}
	row, err := s.row(ctx, record)
	if err != nil {
		return err
	}
	related.Entry = *row
	s.out.Related = append(s.out.Related, related)
	return nil
}

// mailOf returns the first mail of an answer; nil if it has none.
func mailOf(e *schema.AuditEntry) *schema.MailMessage {
	if !e.Success || e.Type != schema.IPCReceive.Type && e.Type != schema.IPCDeliver.Type {
		return nil
	}
	out, invalid := schema.TypeOf[schema.ReceiveOutput]().Decode(e.Payload)
	if invalid != nil {
		return nil
	}
	if mail := out.(*schema.ReceiveOutput).Messages; len(mail) > 0 && mail[0].Causation != "" {
		return &mail[0]
	}
	return nil
}

// called returns the record of the call that has caused an entry: one of those that follow it closely, since a call's own steps
// precede it, otherwise the latest before it, otherwise the earliest later one. It is nil if there is none.
func (s *showing) called(ctx context.Context, n named, fits func(*journal.Record) bool, seq uint64) (*journal.Record, error) {
	f := index.Filter{ID: n.id}
	if n.sender != nil { // it was sent before it was received
		return s.latest(ctx, f, seq-1, fits)
	}
	record, err := s.within(ctx, seq+1, seq+1+maxSteps, fits)
	if err == nil && record == nil {
		record, err = s.latest(ctx, f, seq-1, fits)
	}
	if err == nil && record == nil {
		record, err = s.earliest(ctx, f, seq+1+maxSteps, fits)
	}
	return record, err
}

// effects adds the calls that the shown one has caused.
func (s *showing) effects(ctx context.Context, begun uint64) error {
	e := &s.out.Entry
	if e.ID == "" {
		return nil
	}
	var failed error
	caused, last := 0, uint64(0)
	_, err := s.earliest(ctx, index.Filter{CausedBy: e.ID}, max(begun, maxSteps+1)-maxSteps, func(r *journal.Record) bool {
		if r.Seq <= last {
			return false
		}
		last = r.Seq
		if !mentions(r, e.ID) || !s.reach(ownerOf(r)) || !s.isRow(r, func(effect *schema.AuditEntry) bool {
			return string(effect.Causation) == e.ID && effect.Seq != e.Seq && (!effect.Claimed || uint64(cmp.Or(effect.Intent, effect.Seq)) > begun)
		}) {
			return false
		}
		if s.out.More = caused == maxCaused; s.out.More {
			return true
		}
		effect, err := s.row(ctx, r)
		if failed = err; err != nil {
			return true
		}
		s.out.Related = append(s.out.Related, schema.RelatedCall{Relation: schema.RelationEffect, Claimed: effect.Claimed, Entry: *effect})
		caused++
		return false
	})
	return errors.Join(failed, err)
}

// mentions reports whether a record can contain an id.
func mentions(r *journal.Record, id string) bool {
	return bytes.Contains(r.Request, []byte(id)) || bytes.IndexByte(r.Request, '\\') >= 0
}

// isRow reports whether a record has a row for which fits is true. A record that cannot be read has none.
func (s *showing) isRow(r *journal.Record, fits func(*schema.AuditEntry) bool) bool {
	row, err := rowIn(r, s.Unended, s.call.PID)
	return err == nil && row != nil && fits(row)
}

// row returns the row of a record, with the data of its message if the caller may see it.
func (s *showing) row(ctx context.Context, record *journal.Record) (*schema.AuditEntry, error) {
	row, err := rowIn(record, s.Unended, s.call.PID)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, fmt.Errorf("read entry %d: it has no row", record.Seq)
	}
	if s.call.PID != kernel.Operator && row.PID != s.call.PID {
		return row, nil
	}
	if row.Request, err = s.requestOf(ctx, record, row); err == nil && s.call.PID != kernel.Operator {
		row.Request = withoutValues(row.Type, row.Request)
	}
	return row, err
}

// withoutValues returns the data of a message without values of the memory, since Memory.Get decides whether they may be
// read now.
func withoutValues(typ string, data schema.Value) schema.Value {
	row, ok := schema.Lookup(typ)
	if !ok || row.Domain != schema.Memory && row != schema.JobStart.Syscall || !bytes.HasPrefix(data, []byte("{")) {
		return data
	}
	kept := []byte{'{'}
	jsontype.Members(data, func(name, value []byte) bool {
		switch string(name) {
		case "value", "valueRef", "expected", "payload":
			return true
		}
		if len(kept) > 1 {
			kept = append(kept, ',')
		}
		kept = append(append(jsontype.AppendString(kept, string(name)), ':'), value...)
		return true
	})
	return append(kept, '}')
}
