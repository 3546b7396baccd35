package actors

import (
	"cmp"
	"slices"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// intent is an effect whose outcome is not in the journal.
type intent struct {
	seq         uint64
	typ         string
	pid         int64
	origin      string
	id          string // of the request
	correlation string
	causation   string
	key         string // its idempotency key, where it has claimed one
	lost        bool   // it has ended, and that could not be journaled
}

// intends reports whether a call of the journal is an intent: what comes of it is another entry.
func intends(call *kernel.Call) bool {
	return call.Syscall != nil && call.Syscall.Outcome != "" && call.Err == nil && !call.Repeated
}

// intends notes that entry seq of the journal is an intent. Its key, if any, has no outcome yet.
func (k *Keys) intends(call *kernel.Call, seq uint64) {
	i := &intent{
		seq: seq, typ: call.Message.Type, pid: call.PID, origin: call.Origin,
		id: call.Message.Meta.ID, correlation: call.Message.Meta.Correlation, causation: call.Message.Meta.Causation,
	}
	if call.Claimed {
		i.key = call.Message.Meta.IdempotencyKey
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.intents[seq] = i
}

// ends notes the outcome of an intent, which is that of its key: a failure too, since what was begun may have happened, and
// must not happen twice. What was never begun leaves the key free.
func (k *Keys) ends(call *kernel.Call, in *schema.EffectEnd, seq uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := k.intents[uint64(in.Intent)]
	if i == nil {
		return
	}
	delete(k.intents, i.seq)
	switch {
	case i.key == "":
	case !in.Ran:
		k.drop(callerKey{i.pid, i.key})
	default:
		k.conclude(callerKey{i.pid, i.key}, slices.Clone(call.Data), call.Err, seq)
	}
}

// conclude gives a key its outcome. k is locked.
func (k *Keys) conclude(id callerKey, data []byte, err *fault.Fault, seq uint64) {
	if known := k.known[id]; known != nil {
		k.held[id.pid] -= known.cost()
		known.done, known.data, known.err, known.seq = true, data, err, seq
		k.held[id.pid] += known.cost()
	}
}

// unintend forgets an intent whose entry was lost: it was never begun.
func (k *Keys) unintend(seq uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.intents, seq)
}

// reopen takes back the outcome of an intent whose entry was lost. The next start finds that it has none, and what its key
// is told until then is the same.
func (k *Keys) reopen(first *kernel.Call, in *schema.EffectEnd) {
	k.intends(first, uint64(in.Intent))
	k.mu.Lock()
	defer k.mu.Unlock()
	k.intents[uint64(in.Intent)].lost = true
	if !first.Claimed {
		return
	}
	k.conclude(callerKey{first.PID, first.Message.Meta.IdempotencyKey}, nil, unknown(first.Message.Type), uint64(in.Intent))
}

// presume gives the key of an intent of the kernel's last life its outcome before that is journaled: a caller that asks meanwhile is
// told the same.
func (k *Keys) presume(i *intent) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if i.key != "" {
		k.conclude(callerKey{i.pid, i.key}, nil, unknown(i.typ), i.seq)
	}
}

// unended returns the status of each intent that has no outcome in the journal, by its entry.
func (k *Keys) unended() map[uint64]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := make(map[uint64]string, len(k.intents))
	for seq, i := range k.intents {
		list[seq] = schema.StatusRunning
		if i.lost {
			list[seq] = schema.StatusUnknown
		}
	}
	return list
}

// open returns the intents without an outcome, in their order.
func (k *Keys) open() []intent {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.sorted()
}

func (k *Keys) sorted() []intent {
	list := make([]intent, 0, len(k.intents))
	for _, i := range k.intents {
		list = append(list, *i)
	}
	slices.SortFunc(list, func(a, b intent) int { return cmp.Compare(a.seq, b.seq) })
	return list
}

// unknown is the outcome of an effect whose end the journal does not tell.
func unknown(typ string) *fault.Fault {
	return fault.KernelInterrupted.New("outcome unknown: the kernel stopped while %s was under way: it may or may not have happened; look, and use a new idempotency key to have it done again", typ)
}

// errUnrecorded is what the caller gets of an effect whose outcome cannot be journaled.
func errUnrecorded(typ string) *fault.Fault {
	return fault.JournalLost.New("%s came to an end, but the journal cannot be written: its outcome counts as unknown", typ)
}

// concludes is the command that ends an intent of the kernel's last life.
func (k *Kernel) concludes(i *intent) *fault.Fault {
	row, ok := schema.Lookup(i.typ)
	if !ok || row.Outcome == "" {
		return fault.KernelInternal.New("%s has no outcome", i.typ)
	}
	k.keys.presume(i)
	end := &schema.EffectEnd{
		Intent: int64(i.seq), Type: i.typ, PID: i.pid, Ran: true, Causation: i.causation, Unknown: true,
		Outcome: schema.AppendOutcome(nil, schema.KindCommand, &schema.Outcome{Err: unknown(i.typ)}),
	}
	cause := &kernel.Call{Caller: kernel.Caller{Conn: "recovery"}, Origin: i.origin}
	cause.Message.Meta.ID, cause.Message.Meta.Correlation = i.id, i.correlation
	return k.command(cause, row.Ended(end))
}
