package actors

import (
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

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

	outcome := schema.Outcome{Data: call.Data, Err: call.Err, Repeats: repeats}
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
