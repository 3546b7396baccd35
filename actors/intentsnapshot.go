package actors

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/promptware-os/pwos/schema"
)

// intentChunk begins the chunk of an intent. That of a key begins with a PID, which is even in the form in which it is
// written.
const intentChunk = 1

// openChunks writes the intents without an outcome, a chunk each, in their order, with what is known of their keys. k is
// locked. It is called where the journal has no entry that k does not know of.
func (k *Keys) openChunks() (chunks [][]byte) {
	for _, i := range k.sorted() {
		chunk := binary.AppendUvarint([]byte{intentChunk}, i.seq)
		chunk = binary.AppendVarint(chunk, i.pid)
		var claimed keyed
		if known := k.known[callerKey{i.pid, i.key}]; known != nil && i.key != "" {
			claimed = *known
		}
		chunk = binary.AppendVarint(chunk, claimed.time)
		chunk = append(chunk, claimed.body[:]...)
		for _, text := range []string{i.typ, i.origin, i.id, i.correlation, i.causation, i.key} {
			chunk = append(binary.AppendUvarint(chunk, uint64(len(text))), text...)
		}
		chunks = append(chunks, chunk)
	}
	return chunks
}

// restoreIntent reads what openChunks wrote.
func (k *Keys) restoreIntent(chunk []byte) error {
	i := &intent{}
	claimed := &keyed{}
	var size int
	if i.seq, size = binary.Uvarint(chunk); size <= 0 {
		return errKeyChunk
	}
	chunk = chunk[size:]
	for _, to := range []*int64{&i.pid, &claimed.time} {
		if *to, size = binary.Varint(chunk); size <= 0 {
			return errKeyChunk
		}
		chunk = chunk[size:]
	}
	if len(chunk) < sha256.Size {
		return errKeyChunk
	}
	chunk = chunk[copy(claimed.body[:], chunk):]
	for _, to := range []*string{&i.typ, &i.origin, &i.id, &i.correlation, &i.causation, &i.key} {
		length, size := binary.Uvarint(chunk)
		if size <= 0 || length > uint64(len(chunk)-size) {
			return errKeyChunk
		}
		*to, chunk = string(chunk[size:size+int(length)]), chunk[size+int(length):]
	}
	if row, ok := schema.Lookup(i.typ); !ok || row.Outcome == "" {
		return errKeyChunk
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.intents[i.seq] = i
	if i.key != "" {
		claimed.seq = i.seq
		k.put(callerKey{i.pid, i.key}, claimed)
	}
	return nil
}
