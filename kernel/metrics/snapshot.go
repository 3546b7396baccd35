package metrics

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// errChunk says that a chunk is not what Snapshot wrote.
var errChunk = errors.New("chunk of metrics cannot be read")

// Kinds of chunks: for all calls, and for those of an origin's processes.
const (
	chunkOfAll    = 0
	chunkOfOrigin = 1
)

// Reset forgets all counts.
func (m *Metrics) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all, m.each, m.list = newCounts(), make(map[string]*counts), nil
	m.taken++ // what was taken before cannot be written any more
}

// writtenCounts is how many counts are written before a call that is counted gets its turn.
const writtenCounts = 32

// errOtherSnapshot says that another snapshot was taken before this one was written.
var errOtherSnapshot = errors.New("snapshot metrics: another was taken since")

// Snapshot returns a function that writes a chunk for each syscall, in total and of each origin.
// Many of them do not make it slower: counts that change before they are written are copied first.
// Only the latest snapshot can be written.
func (m *Metrics) Snapshot() func(write func(chunk []byte) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken++
	list, taken := m.list, m.taken
	return func(write func(chunk []byte) error) error {
		for part := range slices.Chunk(list, writtenCounts) {
			chunks, err := m.chunks(part, taken)
			if err != nil {
				return err
			}
			for _, chunk := range chunks {
				if err := write(chunk); err != nil {
					return fmt.Errorf("snapshot metrics: %w", err)
				}
			}
		}
		return nil
	}
}

// chunks are those of some counts, as they were when the snapshot was taken.
func (m *Metrics) chunks(part []*typeCounts, taken uint64) ([][]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.taken != taken {
		return nil, errOtherSnapshot
	}
	chunks := make([][]byte, len(part))
	for i, t := range part {
		as := t
		if t.taken == taken {
			as = t.before
		}
		kind := byte(chunkOfAll)
		if t.own {
			kind = chunkOfOrigin
		}
		chunks[i] = as.appendChunk(kernel.AppendText([]byte{kind}, t.origin))
		t.before = nil
	}
	return chunks, nil
}

func (t *typeCounts) appendChunk(chunk []byte) []byte {
	chunk = kernel.AppendText(chunk, t.name)
	chunk = binary.AppendVarint(chunk, t.denied)
	chunk = binary.AppendVarint(chunk, t.latency)
	for i, n := range t.histogram.buckets {
		if n != 0 {
			chunk = binary.AppendVarint(binary.AppendVarint(chunk, int64(i)), n)
		}
	}
	return chunk
}

// Restore adds a chunk of a snapshot.
func (m *Metrics) Restore(chunk []byte) error {
	if len(chunk) == 0 || chunk[0] > chunkOfOrigin {
		return errChunk
	}
	r := kernel.ChunkReader{Rest: chunk[1:]}
	origin, typ := r.Text(), r.Text()
	name := ""
	row, known := schema.Lookup(typ)
	if !known { // it was registered
		if !schema.Registrable(typ) && !schema.UserSpace(typ) {
			return errChunk
		}
		row, name = schema.SyscallInvoke.Row(), typ
	}
	restored := typeCounts{denied: r.Number(), latency: r.Number()}
	for !r.Bad && len(r.Rest) > 0 {
		i, n := r.Number(), r.Number()
		if i < 0 || i >= int64(len(restored.histogram.buckets)) {
			return errChunk
		}
		restored.histogram.buckets[i] = n
		restored.histogram.total += n
	}
	if r.Bad {
		return errChunk
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.of(row, name, origin, chunk[0] == chunkOfOrigin)
	t.total, t.denied, t.latency, t.histogram = restored.histogram.total, restored.denied, restored.latency, restored.histogram
	return nil
}
