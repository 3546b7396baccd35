package idempotency

import (
	"cmp"
	"slices"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Intent is an effect whose outcome is not in the journal.
type Intent struct {
	Seq         uint64 // of its entry
	Type        string
	Name        string // of the registered syscall, if it calls one
	PID         int64
	Origin      string
	ID          string // of the request
	Correlation string
	Causation   string
	Key         string // its idempotency key, if it has claimed one
	lost        bool   // it has ended, and its outcome could not be journaled
}

// Intend records that entry seq of the journal is an intent. Its key, if any, has no outcome yet.
func (k *Keys) Intend(call *kernel.Call, seq uint64) {
	i := &Intent{
		Seq: seq, Type: call.Message.Type, PID: call.PID, Origin: call.Origin,
		ID: call.Message.Meta.ID, Correlation: call.Message.Meta.Correlation, Causation: call.Message.Meta.Causation,
	}
	if in, ok := call.Input.(*schema.InvokeInput); ok {
		i.Name = in.Name
	}
	if call.Claimed {
		i.Key = call.Message.Meta.IdempotencyKey
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.intents[seq] = i
}

// End records the outcome of an intent, which is its key's too, even a failure: what was begun may have happened, and
// must not happen twice. If it was never begun the key is free again.
func (k *Keys) End(call *kernel.Call, in *schema.EffectEnd, seq uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := k.intents[uint64(in.Intent)]
	if i == nil {
		return
	}
	delete(k.intents, i.Seq)
	switch {
	case i.Key == "":
	case !in.Ran:
		k.drop(callerKey{i.PID, i.Key})
	default:
		k.conclude(callerKey{i.PID, i.Key}, Outcome{slices.Clone(call.Data), slices.Clone(call.Refs), call.Err}, seq)
	}
}

// conclude gives a key its outcome. k is locked.
func (k *Keys) conclude(id callerKey, o Outcome, seq uint64) {
	if known := k.known[id]; known != nil {
		k.held[id.pid] -= known.cost()
		known.done, known.Outcome, known.seq = true, o, seq
		k.held[id.pid] += known.cost()
	}
}

// Unintend removes an intent whose entry was lost: it was never begun.
func (k *Keys) Unintend(seq uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.intents, seq)
}

// Reopen removes the outcome of an intent whose entry was lost. The next start will find that it has none; until then
// its key has the outcome that this start will give it.
func (k *Keys) Reopen(first *kernel.Call, in *schema.EffectEnd) {
	k.Intend(first, uint64(in.Intent))
	k.mu.Lock()
	defer k.mu.Unlock()
	k.intents[uint64(in.Intent)].lost = true
	if !first.Claimed {
		return
	}
	k.conclude(callerKey{first.PID, first.Message.Meta.IdempotencyKey}, Outcome{Err: Unknown(first.Message.Type)}, uint64(in.Intent))
}

// Presume records the outcome for the key of an intent from the kernel's previous run before that
// outcome is journaled, so that a repeat gets the same.
func (k *Keys) Presume(i *Intent, outcome Outcome) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if i.Key != "" {
		k.conclude(callerKey{i.PID, i.Key}, outcome, i.Seq)
	}
}

// Unended returns the status of each intent without outcome in the journal, by the seq of its entry.
func (k *Keys) Unended() map[uint64]string {
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

// Open returns the intents without an outcome, in their order.
func (k *Keys) Open() []Intent {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.sorted()
}

func (k *Keys) sorted() []Intent {
	list := make([]Intent, 0, len(k.intents))
	for _, i := range k.intents {
		list = append(list, *i)
	}
	slices.SortFunc(list, func(a, b Intent) int { return cmp.Compare(a.Seq, b.Seq) })
	return list
}

// Unknown is the outcome of an effect whose end is not in the journal.
func Unknown(typ string) *fault.Fault {
	return fault.KernelInterrupted.New("outcome unknown: the kernel stopped while %s was in flight: it may or may not have happened; check, and use a new idempotency key to repeat it", typ)
}
