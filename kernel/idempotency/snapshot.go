package idempotency

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// errKeyChunk says that a chunk is not what a snapshot wrote.
var errKeyChunk = errors.New("chunk of idempotency keys cannot be read")

// copiedKeys is how many keys are copied before a call that uses one gets its turn.
const copiedKeys = 256

// keyRecord is a key with its outcome.
type keyRecord struct {
	callerKey
	keyed
}

// SnapshotThrough returns a function that writes the keys whose entry is not after through, a chunk
// each, in the order of first use. Many keys do not make it slower: the function copies a few at a
// time. Later changes of keys do not change what it writes, except that keys older than a day may
// be missing, which the next start would forget anyway.
func (k *Keys) SnapshotThrough(through uint64) func(write func(chunk []byte) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	used, open := k.order, k.openChunks()
	return func(write func(chunk []byte) error) error {
		list := k.copied(used, through)
		slices.SortFunc(list, func(a, b keyRecord) int {
			return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.seq, b.seq))
		})
		list = slices.CompactFunc(list, func(a, b keyRecord) bool { return a.seq == b.seq && a.callerKey == b.callerKey }) // given back, and used again
		var chunk []byte
		for i := range list {
			r := &list[i]
			chunk = binary.AppendVarint(chunk[:0], r.pid)
			chunk = binary.AppendVarint(chunk, r.time)
			chunk = binary.AppendUvarint(chunk, r.seq)
			chunk = append(chunk, r.body[:]...)
			chunk = kernel.AppendText(chunk, r.key)
			chunk = schema.AppendOutcome(chunk, schema.KindCommand, &schema.Outcome{Data: r.Data, Refs: r.Refs, Err: r.Err})
			if err := write(chunk); err != nil {
				return fmt.Errorf("snapshot keys: %w", err)
			}
		}
		for _, chunk := range open {
			if err := write(chunk); err != nil {
				return fmt.Errorf("snapshot keys: %w", err)
			}
		}
		return nil
	}
}

// copied returns those of the used keys whose outcome is not after through.
func (k *Keys) copied(used []used, through uint64) (list []keyRecord) {
	for part := range slices.Chunk(used, copiedKeys) {
		k.mu.Lock()
		for _, u := range part {
			if known := k.known[u.key]; known != nil && known.time == u.time && known.done && known.seq > 0 && known.seq <= through {
				list = append(list, keyRecord{u.key, *known})
			}
		}
		k.mu.Unlock()
	}
	return list
}

// Snapshot covers all keys, for a kernel that has ended.
func (k *Keys) Snapshot() func(write func(chunk []byte) error) error {
	return k.SnapshotThrough(^uint64(0))
}

// Reset forgets all keys.
func (k *Keys) Reset() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.known)
	clear(k.intents)
	clear(k.held)
	k.order = nil
}

// Restore adds a chunk of a snapshot, in the order in which they were written.
func (k *Keys) Restore(chunk []byte) error {
	if len(chunk) > 0 && chunk[0] == intentChunk {
		return k.restoreIntent(chunk[1:])
	}
	r := kernel.ChunkReader{Rest: chunk}
	pid := r.Number()
	known := &keyed{time: r.Number(), done: true, seq: r.Unsigned(), body: r.Digest()}
	key := r.Text()
	if r.Bad {
		return errKeyChunk
	}
	outcome, err := schema.DecodeOutcome(slices.Clone(r.Rest))
	if err != nil {
		return fmt.Errorf("%w: %w", errKeyChunk, err)
	}
	known.Outcome = Outcome{outcome.Data, outcome.Refs, outcome.Err}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.put(callerKey{pid, key}, known)
	return nil
}

// intentChunk begins the chunk of an intent. The chunk of a key begins with a PID, which is written
// as an even number.
const intentChunk = 1

// openChunks writes the intents without an outcome, a chunk each, in order, with what is known of
// their keys. k is locked, and knows all entries of the journal.
func (k *Keys) openChunks() (chunks [][]byte) {
	for _, i := range k.sorted() {
		chunk := binary.AppendUvarint([]byte{intentChunk}, i.Seq)
		chunk = binary.AppendVarint(chunk, i.PID)
		var claimed keyed
		if known := k.known[callerKey{i.PID, i.Key}]; known != nil && i.Key != "" {
			claimed = *known
		}
		chunk = binary.AppendVarint(chunk, claimed.time)
		chunk = append(chunk, claimed.body[:]...)
		for _, text := range []string{i.Type, i.Origin, i.ID, i.Correlation, i.Causation, i.Key, i.Name} {
			chunk = kernel.AppendText(chunk, text)
		}
		chunks = append(chunks, chunk)
	}
	return chunks
}

// restoreIntent reads what openChunks wrote.
func (k *Keys) restoreIntent(chunk []byte) error {
	r := kernel.ChunkReader{Rest: chunk}
	i := &Intent{Seq: r.Unsigned(), PID: r.Number()}
	claimed := &keyed{time: r.Number(), body: r.Digest()}
	for _, to := range []*string{&i.Type, &i.Origin, &i.ID, &i.Correlation, &i.Causation, &i.Key, &i.Name} {
		*to = r.Text()
	}
	if r.Bad {
		return errKeyChunk
	}
	if row, ok := schema.Lookup(i.Type); !ok || row.Outcome == "" {
		return errKeyChunk
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.intents[i.Seq] = i
	if i.Key != "" {
		claimed.seq = i.Seq
		k.put(callerKey{i.PID, i.Key}, claimed)
	}
	return nil
}
