package actors

import (
	"bytes"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// keyLife is how long an idempotency key is remembered (PROTOCOL 7).
const keyLife = 24 * time.Hour

// Keys remembers what came of the commands that carried an idempotency key. The same body goes to the same domain, so a
// second one never finds the first under way, but for one with another body, which is refused.
type Keys struct {
	mu    sync.Mutex
	known map[callerKey]*keyed
	order []used // oldest first; a key that was given back and used again is in it twice
}

type callerKey struct {
	pid int64
	key string
}

// used is when a key was claimed.
type used struct {
	key  callerKey
	time int64
}

type keyed struct {
	body [sha256.Size]byte
	time int64 // Unix epoch, milliseconds
	done bool
	seq  uint64
	data []byte
	err  *schema.Error
}

// NewKeys returns an empty memory.
func NewKeys() *Keys { return &Keys{known: make(map[callerKey]*keyed)} }

// claim returns the first outcome of the call's key, where it has one and was used before; otherwise it notes the key
// as used by this call. Another body under the same key is a conflict. A command with a secret in it has no key: the journal
// keeps no more of its body than of another's, so that after a restart neither could be told from the other. It runs each time,
// which it has to be fit for.
func (k *Keys) claim(call *kernel.Call) (first *keyed, err *schema.Error) {
	if call.Message.Meta.IdempotencyKey == "" || call.Syscall.Input.Redacts(call.Input, false) {
		return nil, nil
	}
	id := callerKey{call.PID, call.Message.Meta.IdempotencyKey}
	body := bodyOf(&call.Message)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.expire(call.Time)
	if old := k.known[id]; old != nil {
		if old.body != body || !old.done {
			return nil, schema.Errorf(schema.Conflict, "idempotency key %q was used for another message: take a new key", id.key)
		}
		return old, nil
	}
	k.known[id] = &keyed{body: body, time: call.Time}
	k.order = append(k.order, used{id, call.Time})
	call.Claimed = true
	return nil, nil
}

// settle notes the outcome of a call that claimed its key. A failure of the kernel's own is no outcome, nor is a refusal:
// the command may be tried again. Neither is a failure whose body the journal does not keep: a next start could not tell
// whether another call has the same.
func (k *Keys) settle(call *kernel.Call) {
	if !call.Claimed {
		return
	}
	id := callerKey{call.PID, call.Message.Meta.IdempotencyKey}
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.known[id]
	if known == nil {
		return
	}
	if call.Err != nil && (call.Err.Code() >= 500 || call.Err.Class == schema.Forbidden || call.Syscall.Input.Redacts(call.Input, true)) {
		delete(k.known, id)
		return
	}
	known.done, known.data, known.err = true, call.Data, call.Err
}

// number notes which entry of the journal a key's first call became.
func (k *Keys) number(call *kernel.Call, seq uint64) {
	if !call.Claimed {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if known := k.known[callerKey{call.PID, call.Message.Meta.IdempotencyKey}]; known != nil && known.seq == 0 {
		known.seq = seq
	}
}

// seq is the entry of the first call with the key of call.
func (k *Keys) seq(call *kernel.Call) uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	if known := k.known[callerKey{call.PID, call.Message.Meta.IdempotencyKey}]; known != nil {
		return known.seq
	}
	return 0
}

// Recall notes a call of the journal, so that its key holds across a restart.
func (k *Keys) Recall(call *kernel.Call) {
	if call.Message.Meta.IdempotencyKey == "" || call.Repeated || call.Syscall.Kind != schema.Command {
		return // a query's entry has no key here
	}
	if call.Err != nil && (call.Err.Class == schema.Forbidden || call.Err.Class == schema.Unauthenticated) {
		return // it was never run
	}
	if _, err := k.claim(call); err == nil {
		call.Data = bytes.Clone(call.Data) // the call is the reader's, and gone with the next
		k.settle(call)
		k.number(call, call.Proof.Seq)
	}
}

// forget takes a key back whose call came to nothing.
func (k *Keys) forget(call *kernel.Call) {
	if !call.Claimed {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.known, callerKey{call.PID, call.Message.Meta.IdempotencyKey})
}

// expire forgets keys that are older than keyLife.
func (k *Keys) expire(now int64) {
	for len(k.order) > 0 && now-k.order[0].time >= keyLife.Milliseconds() {
		oldest := k.order[0]
		k.order = k.order[1:]
		if known := k.known[oldest.key]; known != nil && known.time == oldest.time {
			delete(k.known, oldest.key)
		}
	}
}

func bodyOf(m *schema.Message) [sha256.Size]byte {
	h := sha256.New()
	h.Write([]byte(m.Type))
	h.Write([]byte{0})
	h.Write(m.Data)
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	return sum
}
