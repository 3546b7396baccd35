package memory

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// A snapshot is a row of chunks, each of which can be read without the others: sections of one origin each, in ascending
// order. A section is the origin, the number of its entries, and for every entry, in ascending order, key and value. Numbers
// are unsigned varints, and a text is its length followed by its bytes. The same state gives the same bytes.

// ErrSnapshot is returned by Restore for a chunk that no Snapshot wrote.
var ErrSnapshot = errors.New("malformed snapshot of memory")

// chunkSize is the number of bytes from which on a chunk takes no further entry.
const chunkSize = 1 << 20

// Snapshot takes the present state, in a time that does not depend on the number of keys: see kernel.Domain.
func (d *Domain) Snapshot() func(write func(chunk []byte) error) error {
	spaces := make(map[string]*space, len(d.spaces))
	for origin, s := range d.spaces {
		spaces[origin] = &space{tree: *s.tree.Copy()}
	}
	return func(write func(chunk []byte) error) error {
		w := &chunkWriter{write: write}
		for _, origin := range slices.Sorted(maps.Keys(spaces)) {
			spaces[origin].ascend("", func(key, value string) bool {
				w.err = w.entry(origin, key, value)
				return w.err == nil
			})
			w.endSection()
			if w.err != nil {
				return w.err
			}
		}
		return w.flush()
	}
}

// chunkWriter cuts a state into chunks.
type chunkWriter struct {
	write   func(chunk []byte) error
	chunk   []byte
	origin  string
	section []byte // entries of origin that are not in the chunk yet
	count   uint64 // of those entries
	err     error
}

// entry takes the next entry, in the order of a snapshot. It adds to the section first, whose count stands before it.
func (w *chunkWriter) entry(origin, key, value string) error {
	w.origin = origin
	w.section = appendText(appendText(w.section, key), value)
	w.count++
	if len(w.chunk)+len(w.section) < chunkSize {
		return nil
	}
	w.endSection()
	return w.flush()
}

// endSection moves the section into the chunk.
func (w *chunkWriter) endSection() {
	if w.count > 0 {
		w.chunk = binary.AppendUvarint(appendText(w.chunk, w.origin), w.count)
		w.chunk = append(w.chunk, w.section...)
	}
	w.section, w.count = w.section[:0], 0
}

// flush hands the chunk over for good: the writer may keep it.
func (w *chunkWriter) flush() error {
	if len(w.chunk) == 0 {
		return nil
	}
	chunk := w.chunk
	w.chunk = nil
	if err := w.write(chunk); err != nil {
		return fmt.Errorf("write snapshot of memory: %w", err)
	}
	return nil
}

// Restore adds a chunk: see kernel.Domain. It refuses one that does not continue what it was given before.
func (d *Domain) Restore(chunk []byte) error {
	r := &chunkReader{rest: chunk}
	for len(r.rest) > 0 && !r.bad {
		d.restoreSection(r)
	}
	if r.bad {
		return ErrSnapshot
	}
	return nil
}

// restoreSection adds one section. Keys must ascend, over chunks too: only so does a snapshot write them, and only so can
// they be loaded without a search.
func (d *Domain) restoreSection(r *chunkReader) {
	origin := string(r.text())
	count := r.number()
	s := d.spaces[origin]
	if s == nil {
		s = &space{}
	}
	last := s.last()
	for ; count > 0 && !r.bad; count-- {
		key, value := string(r.text()), r.text()
		r.bad = r.bad || key <= last || inProc(key) || len(value) == 0
		if !r.bad {
			s.load(key, value)
		}
		last = key
	}
	if s.len() > 0 {
		d.spaces[origin] = s
	}
}

// appendText appends a text with its length in front.
func appendText(dst []byte, text string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// chunkReader reads a chunk from its beginning. What does not fit sets bad, and reads as empty from there on.
type chunkReader struct {
	rest []byte
	bad  bool
}

// number returns the next unsigned varint.
func (r *chunkReader) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if r.bad = r.bad || size <= 0; r.bad {
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// text returns the next text; it aliases the chunk.
func (r *chunkReader) text() []byte {
	n := r.number()
	if r.bad = r.bad || n > uint64(len(r.rest)); r.bad {
		return nil
	}
	text := r.rest[:n]
	r.rest = r.rest[n:]
	return text
}
