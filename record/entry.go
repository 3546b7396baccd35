package record

import (
	"fmt"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Encoder encodes calls as journal entries (PROTOCOL 7). It reuses its buffers for the next call.
type Encoder struct {
	entry   journal.Entry
	request []byte
	outcome []byte
}

// Entry returns the journal's entry for call, valid until the next one. It has what the types of request and outcome keep,
// and no data of a query's outcome. repeats is the entry whose outcome is repeated, 0 for a call that ran.
func (r *Encoder) Entry(call *kernel.Call, repeats uint64) *journal.Entry {
	msg := call.Message
	msg.Data = call.Syscall.Input().Redact(msg.Data, call.Input, call.Err != nil)
	r.request = schema.AppendMessage(r.request[:0], &msg)
	r.request = r.request[:len(r.request)-1] // the journal adds its own '\n'

	outcome := schema.Outcome{Data: call.Data, Refs: call.Refs, Err: call.Err, Repeats: repeats}
	if a := call.Approval; a != nil {
		outcome.Let = &schema.LetThrough{Approval: a.ID, Rule: a.Rule, Policy: a.Policy, Exhausted: a.Exhausted, Advisory: a.Advisory}
	}
	if call.Err == nil && call.Syscall.Kind != schema.KindQuery {
		outcome.Data = call.Syscall.Output().Redact(call.Data, nil, false)
	}
	r.outcome = schema.AppendOutcome(r.outcome[:0], call.Syscall.Kind, &outcome)
	r.entry = journal.Entry{
		Time: call.Time, Tick: call.Tick, PID: call.PID, Origin: call.Origin, Conn: call.Caller.Conn,
		Request: r.request, Outcome: r.outcome, LatencyUS: call.Proof.LatencyUS,
	}
	return &r.entry
}

// Recall returns the call of an entry, as far as the journal has it: for a query without its data.
func Recall(record *journal.Record) (*kernel.Call, error) {
	if kind, typ := schema.Peek(record.Request); kind == schema.KindQuery {
		call, err := asked(record, typ)
		if err == nil {
			call.Message.Type = typ
		}
		return call, err
	}
	return callOf(record)
}

// asked returns the call of a query's entry with the PID, type and verdict that are known without decoding.
func asked(record *journal.Record, typ string) (*kernel.Call, error) {
	row, _ := schema.Lookup(typ) // nil for a row of a newer kernel, which is not counted
	call := recorded(record, kernel.Request{Syscall: row})
	outcome, err := schema.DecodeOutcome(record.Outcome)
	if err != nil {
		return nil, fmt.Errorf("decode outcome: %w", err)
	}
	call.Err = outcome.Err
	return call, nil
}

// callOf returns the call of an entry.
func callOf(record *journal.Record) (*kernel.Call, error) {
	msg, err := schema.Decode(record.Request, schema.OsMessage)
	if err != nil {
		return nil, fmt.Errorf("decode request: %w", err)
	}
	row, ok := schema.Lookup(msg.Type)
	if !ok {
		return nil, errNewer(msg.Type)
	}
	call := recorded(record, kernel.Request{Caller: kernel.Caller{Conn: record.Conn}, Message: msg, Syscall: row})
	outcome, err := schema.DecodeOutcome(record.Outcome)
	if err != nil {
		return nil, fmt.Errorf("decode outcome: %w", err)
	}
	call.Data, call.Refs, call.Err, call.Repeated = outcome.Data, outcome.Refs, outcome.Err, outcome.Repeats != 0
	if row.Kind == schema.KindCommand {
		call.Input, err = row.Input().Decode(msg.Data)
		if err != nil && call.Err == nil { // the data of a failed call may be redacted
			return nil, fmt.Errorf("decode data: %w", err)
		}
	}
	return call, nil
}

// recorded returns the call of an entry, without its outcome.
func recorded(record *journal.Record, r kernel.Request) *kernel.Call {
	call := kernel.NewCall(r, kernel.Moment{Tick: record.Tick, Time: record.Time})
	call.PID, call.Origin = record.PID, record.Origin
	call.Proof = schema.Proof{Seq: record.Seq, PID: record.PID, Tick: record.Tick, LatencyUS: record.LatencyUS}
	return &call
}

func errNewer(typ string) error {
	return fmt.Errorf("no syscall is named %s: the journal was written by a newer kernel", typ)
}
