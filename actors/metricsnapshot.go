package actors

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/promptware-os/pwos/schema"
)

// MetricsPart is the name of the metrics beside the domains.
const MetricsPart schema.Domain = "metrics"

var _ Part = (*Metrics)(nil)

// errMetricsChunk says that a chunk is not what Snapshot wrote.
var errMetricsChunk = errors.New("chunk of metrics cannot be read")

// Kinds of chunks: of the calls of everybody, and of those of an origin's processes.
const (
	chunkOfAll    = 0
	chunkOfOrigin = 1
)

// Reset implements Part.
func (m *Metrics) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all, m.each = newCounts(), make(map[string]counts)
}

// Snapshot implements Part: a chunk for each syscall, in all and of each origin. They are small, and made at once.
func (m *Metrics) Snapshot() func(write func(chunk []byte) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var chunks [][]byte
	add := func(kind byte, origin string, c counts) {
		for _, t := range c {
			if t != nil {
				chunks = append(chunks, t.appendChunk(appendText([]byte{kind}, origin)))
			}
		}
	}
	add(chunkOfAll, "", m.all)
	for origin, c := range m.each {
		add(chunkOfOrigin, origin, c)
	}
	return func(write func(chunk []byte) error) error {
		for _, chunk := range chunks {
			if err := write(chunk); err != nil {
				return fmt.Errorf("snapshot metrics: %w", err)
			}
		}
		return nil
	}
}

func (t *typeCounts) appendChunk(chunk []byte) []byte {
	chunk = appendText(chunk, t.row.Type)
	chunk = binary.AppendVarint(chunk, t.denied)
	chunk = binary.AppendVarint(chunk, t.latency)
	for i, n := range t.histogram.buckets {
		if n != 0 {
			chunk = binary.AppendVarint(binary.AppendVarint(chunk, int64(i)), n)
		}
	}
	return chunk
}

// Restore implements Part.
func (m *Metrics) Restore(chunk []byte) error {
	if len(chunk) == 0 || chunk[0] > chunkOfOrigin {
		return errMetricsChunk
	}
	r := chunkReader{rest: chunk[1:]}
	origin, typ := r.text(), r.text()
	row, known := schema.Lookup(typ)
	if !known {
		return errMetricsChunk
	}
	t := &typeCounts{row: row, denied: r.number(), latency: r.number()}
	for !r.bad && len(r.rest) > 0 {
		i, n := r.number(), r.number()
		if i < 0 || i >= int64(len(t.histogram.buckets)) {
			return errMetricsChunk
		}
		t.histogram.buckets[i] = n
		t.histogram.total += n
	}
	if r.bad {
		return errMetricsChunk
	}
	t.total = t.histogram.total
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.all
	if chunk[0] == chunkOfOrigin {
		of = m.of(origin)
	}
	of[row.Index()] = t
	return nil
}
