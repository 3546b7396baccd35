package actors

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// maxBatch bounds a batch, so that no connection holds a domain for long. Commands that come together share one fsync
// only if they share a batch.
const maxBatch = 64

// batch is a run of consecutive frames of one connection that go the same way: all to one domain, or all answered by
// the connection itself (domain local), because they never became calls. It has one owner at a time: the reader fills
// it, the domain decides it, the connection writes its answers and recycles it.
type batch struct {
	domain   schema.Domain
	calls    []kernel.Call
	size     int      // bytes read for these calls: with their number, the credits to give back
	account  *drawing // of the agent that these calls are made by, or for; nil: the operator's
	answers  int      // bytes of their outcomes that the account was charged with
	replyTo  *actor.PID
	alone    bool            // nothing else of the connection is under way beside it
	step     bool            // the kernel's own call: its domain is told when it has been applied, nobody is answered
	follow   *following      // what the connection goes on with: one call of the kernel's own, whose outcome is pushed
	owed     bool            // of a step: it must take effect, and is made again where its entry was lost
	due      bool            // of one that is owed: the journal can be written again
	note     *actor.PID      // of a step: the agent that wants to know when it is on disk
	saga     *saga           // of a step: the call that it is for
	begun    time.Time       // of an intent: when its call was decided, from which its latency counts
	until    time.Time       // when a waiting call is decided for the last time
	ends     *batch          // of a step: the intent whose outcome it is
	ctx      context.Context // of a batch that is alone: it ends with the connection, or with who waits there
	answered bool            // it has come back, and waits for one before it
	next     *batch          // finished after this one, and sent to the audit log with it
	lend     uint64          // the ticket of the reader that is going to sync it (journal.Committer); 0: none is

	publication uint64 // it is answered once others can see what was handed over up to this count; 0: at once
	epoch       uint64 // which life of the journal it was decided in
}

// unrecorded reports whether b leaves nothing in the journal: it is the kernel's own look at what stands there already.
func (b *batch) unrecorded() bool {
	return b.follow != nil && b.calls[0].Syscall.Kind == schema.KindQuery
}

// commands reports whether one of the calls is a command.
func (b *batch) commands() bool {
	for i := range b.calls {
		if row := b.calls[i].Syscall; row != nil && row.Kind == schema.KindCommand {
			return true
		}
	}
	return false
}

// charge adds the outcome of a call to what its agent has in flight.
func (b *batch) charge(call *kernel.Call) {
	if b.account != nil && !b.step {
		b.answers += len(call.Data)
		b.account.add(len(call.Data))
	}
}

// throttled reports whether no call of b has an entry, because all were refused before they were judged.
func (b *batch) throttled() bool {
	for i := range b.calls {
		if !b.calls[i].Throttled {
			return false
		}
	}
	return true
}

// answers is a batch on its way back, every outcome filled in.
type answers batch

// released is a batch of answers from the audit log, which has more of them as a rule: who posts it has what it wakes run by
// workers.runGathered.
type released batch

// split tells a connection that head, the first calls of rest, will come back on its own, before rest.
type split struct{ head, rest *batch }

// local marks a batch that no domain sees.
const local schema.Domain = ""

var batches = sync.Pool{New: func() any { return new(batch) }}

func newBatch() *batch { return batches.Get().(*batch) }

// LogValue names b without its calls: a message that finds its actor gone is logged, and a payload in a log is a leak.
func (b *batch) LogValue() slog.Value {
	return slog.GroupValue(slog.String("domain", string(b.domain)), slog.Int("calls", len(b.calls)))
}

// LogValue is that of the batch.
func (a *answers) LogValue() slog.Value { return (*batch)(a).LogValue() }

// LogValue is that of the batch.
func (r *released) LogValue() slog.Value { return (*batch)(r).LogValue() }

// recycle ends the life of b.
func (b *batch) recycle() {
	clear(b.calls)
	*b = batch{calls: b.calls[:0]}
	batches.Put(b)
}
