// Package idempotency keeps the outcomes of commands that carried an idempotency key (PROTOCOL 7). The outcome of an
// effect comes later, so it also keeps effects without outcome. Both are a fold over the whole journal.
package idempotency

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// keyLife is how long an idempotency key is kept (PROTOCOL 7).
const keyLife = 24 * time.Hour

// Keys keeps the outcomes of commands that carried an idempotency key. Calls with the same body go to the same
// domain, so a repeat finds the first call in flight only if that waits; it is refused then, as is a repeat with
// another body.
type Keys struct {
	mu    sync.Mutex
	known map[callerKey]*keyed
	order []used        // oldest first; a key that was released and used again is in it twice
	held  map[int64]int // bytes that the keys of a process use
	most  int           // bytes that the keys of an agent may use

	intents map[uint64]*Intent // by seq of their entry: effects without outcome, with or without a key
}

type callerKey struct {
	pid int64
	key string
}

// used is a claimed key and when it was claimed.
type used struct {
	key  callerKey
	time int64
}

// Outcome is the outcome of the first command with a key: data, with its references for the reply's metadata, or an
// error.
type Outcome struct {
	Data []byte
	Refs []byte
	Err  *fault.Fault
}

type keyed struct {
	body [sha256.Size]byte
	time int64 // Unix epoch, milliseconds
	done bool
	seq  uint64
	Outcome
}

// New returns an empty memory.
func New() *Keys {
	return &Keys{known: make(map[callerKey]*keyed), held: make(map[int64]int), most: agentKeys, intents: make(map[uint64]*Intent)}
}

// SetRoom bounds the bytes that the keys of an agent may use. Call it before any key is claimed.
func (k *Keys) SetRoom(bytes int) { k.most = bytes }

// Claim returns the first outcome of the call's key if the key was used before; otherwise it claims
// the key for this call. Another body under the same key is a conflict. A command with a member
// that is withheld entirely from the journal has no key, since after a restart the journal could
// neither compare its body nor repeat its answer; it runs each time. If only a part of a member is
// withheld, such as a header, calls that differ in nothing else are the same. If there is no room
// for another key, none is claimed.
func (k *Keys) Claim(call *kernel.Call) (first *Outcome, err *fault.Fault) {
	return k.claimed(call, k.room)
}

func (k *Keys) claimed(call *kernel.Call, room func(pid int64) *fault.Fault) (first *Outcome, err *fault.Fault) {
	if call.Message.Meta.IdempotencyKey == "" || call.Syscall.Input().Withholds(call.Input, false) || call.Syscall.Output().Withholds(nil, false) {
		return nil, nil
	}
	id := callerKey{call.PID, call.Message.Meta.IdempotencyKey}
	if len(id.key) > maxKey {
		return nil, errLongKey(len(id.key))
	}
	// The journal leaves it out, and a start that reads the journal has to compute the same sum.
	body := bodyOf(call, call.Syscall.Input().Redact(call.Message.Data, call.Input, false))
	k.mu.Lock()
	defer k.mu.Unlock()
	k.expire(call.Time)
	if old := k.known[id]; old != nil {
		switch {
		case old.body != body:
			return nil, errOtherBody(id.key)
		case !old.done:
			return nil, errUnderWay(id.key)
		}
		call.First = old.seq
		return &old.Outcome, nil
	}
	if err := room(id.pid); err != nil {
		return nil, err
	}
	k.put(id, &keyed{body: body, time: call.Time})
	call.Claimed = true
	return nil, nil
}

// Repeats reports whether Claim would return the first outcome of the call's key.
func (k *Keys) Repeats(call *kernel.Call) bool {
	key := call.Message.Meta.IdempotencyKey
	if key == "" || call.Claimed || call.Syscall.Kind != schema.KindCommand || call.Syscall.Input().Withholds(call.Input, false) || call.Syscall.Output().Withholds(nil, false) {
		return false
	}
	body := bodyOf(call, call.Syscall.Input().Redact(call.Message.Data, call.Input, false))
	k.mu.Lock()
	defer k.mu.Unlock()
	k.expire(call.Time)
	old := k.known[callerKey{call.PID, key}]
	return old != nil && old.done && old.body == body
}

// Record records the outcome of a call that claimed its key. Internal errors and refusals are not
// outcomes: the command may be tried again. Nor is a failure whose body the journal does not keep,
// since after a restart it could not be compared with another call's. An intent has no outcome yet.
func (k *Keys) Record(call *kernel.Call) {
	if !call.Claimed || call.Err == nil && call.Effect != nil && call.Effect.Run != nil {
		return
	}
	id := callerKey{call.PID, call.Message.Meta.IdempotencyKey}
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.known[id]
	if known == nil {
		return
	}
	if call.Err != nil && (unbinding(call.Err) || call.Syscall.Input().Withholds(call.Input, true)) {
		k.drop(id)
		return
	}
	known.done, known.Outcome = true, Outcome{call.Data, call.Refs, call.Err}
	k.held[id.pid] += known.cost()
}

// Number records the seq of a key's first call.
func (k *Keys) Number(call *kernel.Call, seq uint64) {
	if !call.Claimed {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if known := k.known[callerKey{call.PID, call.Message.Meta.IdempotencyKey}]; known != nil && known.seq == 0 {
		known.seq = seq
	}
}

// Seq is the seq of the first call with the key of call, 0 if that was lost.
func (k *Keys) Seq(call *kernel.Call) uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	if known := k.known[callerKey{call.PID, call.Message.Meta.IdempotencyKey}]; known != nil && known.seq > 0 {
		return known.seq
	}
	if call.Err != nil {
		return 0
	}
	// The key has expired since, or belongs to another call. An entry that named no first one would be applied at the
	// next start. A first call that succeeded is not lost: this call would have been refused with it.
	return call.First
}

// Recall records a call of the journal, so that its key holds across a restart.
func (k *Keys) Recall(call *kernel.Call) {
	if end, ok := call.Input.(*schema.EffectEnd); ok {
		k.End(call, end, call.Proof.Seq)
		return
	}
	roomy := func(int64) *fault.Fault { return nil } // there was room when the call was made
	if call.Intends() {
		_, _ = k.claimed(call, roomy) // the journal has no other call under the same key
		k.Intend(call, call.Proof.Seq)
		return
	}
	if call.Message.Meta.IdempotencyKey == "" || call.Repeated || call.Syscall.Kind != schema.KindCommand {
		return // a query's entry has no key
	}
	if neverRun(call) {
		return
	}
	if _, err := k.claimed(call, roomy); err == nil {
		call.Data = bytes.Clone(call.Data) // the call's memory is the connection's, which reuses it
		k.Record(call)
		k.Number(call, call.Proof.Seq)
	}
}

// unbinding reports whether a failure releases its idempotency key: an internal error, or a refusal before anything
// ran (PROTOCOL 7).
func unbinding(f *fault.Fault) bool {
	switch f.Kind {
	case fault.Unauthenticated, fault.Forbidden, fault.QuotaExceeded, fault.Ended, fault.Pending:
		return true
	}
	return f.Code() >= 500
}

// neverRun reports whether a call of the journal was refused before it could claim its key: by capability, identity
// or tick, or because the key was another call's. The call that has the key may have a later entry, since it was in
// flight.
func neverRun(call *kernel.Call) bool {
	switch {
	case call.Err == nil:
		return false
	case errors.Is(call.Err, fault.IdempotencyOtherBody), errors.Is(call.Err, fault.IdempotencyUnderWay), errors.Is(call.Err, fault.ClockAhead):
		return true
	case call.Err.ID == "" && call.Err.Kind == fault.InvalidInput: // from before errors had ids
		in, ok := call.Input.(schema.Targeted)
		return ok && in.On().Tick != nil && *in.On().Tick > call.Tick
	}
	return unbinding(call.Err) && call.Err.Code() < 500
}

func errOtherBody(key string) *fault.Fault {
	return fault.IdempotencyOtherBody.New("idempotency key %q was used for another message: take a new key", key).With("idempotency_key", key)
}

func errUnderWay(key string) *fault.Fault {
	return fault.IdempotencyUnderWay.New("the first message with idempotency key %q is still being carried out: wait for its answer", key)
}

// Adopt takes over the bodies and outcomes of keys that were made again of the same journal, in which
// entries were redacted since.
func (k *Keys) Adopt(made *Keys) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, now := range made.known {
		if old := k.known[id]; old != nil && old.time == now.time && old.done == now.done && old.seq == now.seq {
			k.held[id.pid] += now.cost() - old.cost()
			old.body, old.Outcome = now.body, now.Outcome
		}
	}
}

// Forget releases the key of a call that was lost.
func (k *Keys) Forget(call *kernel.Call) {
	if !call.Claimed {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop(callerKey{call.PID, call.Message.Meta.IdempotencyKey})
}

// expire drops keys older than keyLife.
func (k *Keys) expire(now int64) {
	for len(k.order) > 0 && now-k.order[0].time >= keyLife.Milliseconds() {
		oldest := k.order[0]
		k.order = k.order[1:]
		if known := k.known[oldest.key]; known != nil && known.time == oldest.time {
			k.drop(oldest.key)
		}
	}
}

func bodyOf(call *kernel.Call, data []byte) [sha256.Size]byte {
	h := sha256.New()
	h.Write([]byte(call.Message.Type))
	h.Write([]byte{0})
	if origin := call.Message.Meta.Origin; origin != "" { // the same key in another origin is another key
		h.Write([]byte(origin))
		h.Write([]byte{0})
	}
	h.Write(data)
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	return sum
}

// Bounds of idempotency keys. They are in memory for a day, and every caller can make them.
const (
	maxKey       = 256       // bytes of one key
	agentKeys    = 32 << 20  // bytes that the keys of an agent use, with their outcomes
	operatorKeys = 256 << 20 // the same for the operator
	keyCost      = 250       // bytes that a key uses besides its text and its outcome
)

// errLongKey refuses a key that is too long.
func errLongKey(length int) *fault.Fault {
	return fault.IdempotencyTooLong.New("metadata.idempotencyKey is %d bytes long: take one of at most %d", length, maxKey)
}

// errManyKeys refuses a key of a process whose keys use too much.
func errManyKeys(pid int64) *fault.Fault {
	return fault.IdempotencyTooMany.New(
		"pid %d has used as many idempotency keys in 24 hours as can be kept: leave out metadata.idempotencyKey where a repetition does no harm", pid)
}

// room returns why another key cannot be kept, nil if it can.
func (k *Keys) room(pid int64) *fault.Fault {
	most := k.most
	if pid == kernel.Operator {
		most = operatorKeys
	}
	if k.held[pid] >= most {
		return errManyKeys(pid)
	}
	return nil
}

// put keeps a key.
func (k *Keys) put(id callerKey, known *keyed) {
	k.known[id] = known
	k.order = append(k.order, used{id, known.time})
	k.held[id.pid] += id.cost() + known.cost()
}

// drop removes a key, if it is there.
func (k *Keys) drop(id callerKey) {
	known := k.known[id]
	if known == nil {
		return
	}
	delete(k.known, id)
	if k.held[id.pid] -= id.cost() + known.cost(); k.held[id.pid] <= 0 {
		delete(k.held, id.pid)
	}
}

func (id callerKey) cost() int { return keyCost + len(id.key) }

// cost is the bytes that an outcome uses.
func (k *keyed) cost() int {
	if k.Err != nil {
		return len(k.Data) + len(k.Err.Text())
	}
	return len(k.Data)
}
