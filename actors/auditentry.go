package actors

import (
	"fmt"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// auditEntry is the row of a record in the form of CAP's SyscallResult, nil where it has none of its own. A call has one row:
// where it has an effect, that is the end's entry, as the call's own, with its verdict; the intent is a row only while it is
// among unended, which says with which status. Where rules stand only the operator is shown.
func auditEntry(record *journal.Record, unended map[uint64]string, reader int64) (*schema.AuditEntry, error) {
	call, err := recall(record)
	if err != nil {
		return nil, fmt.Errorf("read entry %d: %w", record.Seq, err)
	}
	if f := call.Err; f != nil && reader != kernel.Operator && f.Detail("at") != "" { // of an operator that acted as this process
		f.Message = strings.ReplaceAll(f.Message, " ("+f.Detail("at")+")", "")
	}
	if call.Intends() {
		status := unended[record.Seq]
		if status == "" {
			return nil, nil
		}
		e := rowOf(call)
		e.Success, e.Status, e.Payload, e.Intent = false, status, nil, e.Seq
		return e, nil
	}
	end := schema.EndOf(&call.Message)
	if end == nil {
		return rowOf(call), nil
	}
	row, ok := schema.Lookup(end.Type)
	if !ok {
		return nil, fmt.Errorf("read entry %d: %w", record.Seq, errNewer(end.Type))
	}
	call.Syscall, call.Message.Type, call.PID = row, end.Called(), end.PID
	call.Message.Meta.ID, call.Message.Meta.Causation = call.Message.Meta.Causation, end.Causation
	e := rowOf(call)
	e.Intent = end.Intent
	if end.Unknown {
		e.Status = schema.StatusUnknown
	}
	return e, nil
}

// rowOf is the row of a call of the journal that has an outcome.
func rowOf(call *kernel.Call) *schema.AuditEntry {
	meta, called := &call.Message.Meta, call.Message.Called()
	e := &schema.AuditEntry{
		Success: call.Err == nil, Status: schema.StatusOK, SyscallCode: call.Syscall.Code, PID: call.PID, Tick: call.Tick,
		Payload:   slices.Clone(schema.Value(call.Data)), // the record is the reader's
		LatencyUS: call.Proof.LatencyUS, Seq: int64(call.Proof.Seq), Type: called, Time: call.Time,
		ID: meta.ID, Correlation: schema.MaybeText(meta.Correlation), Causation: schema.MaybeText(meta.Causation),
	}
	if e.SyscallCode == "" {
		e.SyscallCode = called
	}
	if call.Err != nil {
		e.Error, e.Code, e.ErrorID, e.Status = schema.MaybeText(call.Err.Error()), int64(call.Err.Code()), string(call.Err.ID), schema.StatusFailed
		if call.Err.Denied() {
			e.Status = schema.StatusDenied
		}
	}
	return e
}

// ownerOf is the process whose call a record tells of, found without decoding records that end nothing.
func ownerOf(record *journal.Record) int64 {
	if record.PID != kernel.Operator {
		return record.PID
	}
	_, typ := schema.Peek(record.Request)
	if row, ok := schema.Lookup(typ); !ok || !row.Ends() {
		return record.PID
	}
	msg, invalid := schema.Decode(record.Request, schema.OsMessage)
	if invalid != nil {
		return record.PID
	}
	if end := schema.EndOf(&msg); end != nil {
		return end.PID
	}
	return record.PID
}

// recorder writes calls in the form of the journal (PROTOCOL 7). Its buffers are used again for the next call.
type recorder struct {
	entryOf journal.Entry
	request []byte
	outcome []byte
}

// entry returns the journal's entry for call, valid until the next one. Of request and outcome it holds what their types keep;
// of a query's outcome it holds no data. repeats is the entry whose outcome was given again, 0 for a call that ran.
func (r *recorder) entry(call *kernel.Call, repeats uint64) *journal.Entry {
	msg := call.Message
	msg.Data = call.Syscall.Input().Redact(msg.Data, call.Input, call.Err != nil)
	r.request = schema.AppendMessage(r.request[:0], &msg)
	r.request = r.request[:len(r.request)-1] // the '\n' is the journal's own

	outcome := schema.Outcome{Data: call.Data, Refs: call.Refs, Err: call.Err, Repeats: repeats}
	if a := call.Approval; a != nil {
		outcome.Let = &schema.LetThrough{Approval: a.ID, Rule: a.Rule, Policy: a.Policy, Exhausted: a.Exhausted, Advisory: a.Advisory}
	}
	if call.Err == nil && call.Syscall.Kind != schema.KindQuery {
		outcome.Data = call.Syscall.Output().Redact(call.Data, nil, false)
	}
	r.outcome = schema.AppendOutcome(r.outcome[:0], call.Syscall.Kind, &outcome)
	r.entryOf = journal.Entry{
		Time: call.Time, Tick: call.Tick, PID: call.PID, Origin: call.Origin, Conn: call.Caller.Conn,
		Request: r.request, Outcome: r.outcome, LatencyUS: call.Proof.LatencyUS,
	}
	return &r.entryOf
}
