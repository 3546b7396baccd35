package actors

import (
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema/fault"
)

// What idempotency keys may take. They are kept in memory for a day, and whoever may call anything may make them.
const (
	maxKey       = 256       // bytes of one key
	agentKeys    = 32 << 20  // bytes that the keys of a process take, with their outcomes
	operatorKeys = 256 << 20 // likewise the operator's
	keyCost      = 250       // bytes that a key takes beside its text and its outcome
)

// errLongKey refuses a key that is too long to be kept.
func errLongKey(length int) *fault.Fault {
	return fault.IdempotencyTooLong.New("metadata.idempotencyKey is %d bytes long: take one of at most %d", length, maxKey)
}

// errManyKeys refuses a key of a process that has too many.
func errManyKeys(pid int64) *fault.Fault {
	return fault.IdempotencyTooMany.New(
		"pid %d has used so many idempotency keys in 24 hours that no more of them can be kept: leave out metadata.idempotencyKey where a repetition does no harm", pid)
}

// room returns why another key cannot be kept, nil where it can.
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

// drop forgets a key, where it is there.
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

// cost is how many bytes an outcome takes.
func (k *keyed) cost() int {
	if k.err != nil {
		return len(k.data) + len(k.err.Text())
	}
	return len(k.data)
}
