package record

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// rowIn returns the row of a record in the form of CAP's SyscallResult, or nil if the record has none. A call has one
// row. For a call with an effect, that is the entry of its end, shown as the call's own; the intent is a row only while it
// is in unended, which gives its status. Only the operator sees where rules are defined.
func rowIn(record *journal.Record, unended map[uint64]string, reader int64) (*schema.AuditEntry, error) {
	call, err := callOf(record)
	if err != nil {
		return nil, fmt.Errorf("read entry %d: %w", record.Seq, err)
	}
	if f := call.Err; f != nil && reader != kernel.Operator && f.Detail("at") != "" { // the operator acted as this process
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

// rowOf returns the row of a call in the journal that has an outcome.
func rowOf(call *kernel.Call) *schema.AuditEntry {
	meta, called := &call.Message.Meta, call.Message.Called()
	answered, _ := call.Answered()
	e := &schema.AuditEntry{
		Success: call.Err == nil, Status: schema.StatusOK, SyscallCode: call.Syscall.Code, PID: call.PID, Tick: call.Tick,
		Payload:   slices.Clone(schema.Value(answered)), // the reader reuses the record's memory
		LatencyUS: call.Proof.LatencyUS, Seq: int64(call.Proof.Seq), Type: called, Time: call.Time,
		ID: meta.ID, Correlation: schema.MaybeText(meta.Correlation), Causation: schema.MaybeText(meta.Causation),
		Claimed: meta.Causation != "" && claims(call),
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

// claims reports whether the causation of a call is what a client has written into its message. The kernel sets it for its own
// steps, and for what it calls itself on connections with these names. It is the only place that tells a claim from a fact.
func claims(call *kernel.Call) bool {
	own := slices.ContainsFunc([]string{"kernel", "recovery", "net-", "undo-", "job-", "k-"}, func(prefix string) bool {
		return strings.HasPrefix(call.Caller.Conn, prefix)
	})
	return !call.Syscall.Internal && !own
}

// ownerOf returns the PID whose call a record is about. It decodes only records that end an intent.
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

// keyOf returns the key of memory that a record's command changes, or "".
func keyOf(r *journal.Record) string {
	msg, invalid := schema.Decode(r.Request, schema.OsMessage)
	if invalid != nil {
		return ""
	}
	return schema.MemoryKeyOf(&msg)
}

// succeeded reports whether the outcome of a record is an answer.
func succeeded(r *journal.Record) bool { return bytes.HasPrefix(r.Outcome, []byte(`{"kind":"reply"`)) }
