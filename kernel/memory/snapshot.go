package memory

import (
	"errors"
	"maps"
	"slices"

	"github.com/promptware-os/pwos/kernel"
)

// A snapshot is a series of chunks, each readable without the others: key and value of every entry,
// in ascending order. An empty key and the origin precede the first entry of a chunk and of an
// origin. A text is its length, an unsigned varint, followed by its bytes. The same state gives the
// same bytes.

// ErrSnapshot is returned by Restore for a chunk that no Snapshot wrote.
var ErrSnapshot = errors.New("malformed snapshot of memory")

// Snapshot takes the present state, in a time that does not depend on the number of keys: see kernel.Domain.
func (d *Domain) Snapshot() func(write func(chunk []byte) error) error {
	spaces := make(map[string]*space, len(d.spaces))
	for origin, s := range d.spaces {
		spaces[origin] = &space{tree: *s.tree.Copy()}
	}
	return func(write func(chunk []byte) error) error {
		w := &kernel.ChunkWriter{Write: write}
		for _, origin := range slices.Sorted(maps.Keys(spaces)) {
			begun := false
			spaces[origin].ascend("", func(key, value string) bool {
				if !begun || len(w.Chunk) == 0 {
					w.Chunk = kernel.AppendText(kernel.AppendText(w.Chunk, ""), origin)
					begun = true
				}
				w.Chunk = kernel.AppendText(kernel.AppendText(w.Chunk, key), value)
				return w.Cut()
			})
		}
		return w.Flush()
	}
}

// Restore adds a chunk: see kernel.Domain. Keys must ascend, over chunks too: only so does a snapshot write them, and only so
// can they be loaded without a search.
func (d *Domain) Restore(chunk []byte) error {
	r := &kernel.ChunkReader{Rest: chunk}
	var s *space
	last := ""
	for len(r.Rest) > 0 && !r.Bad {
		key := r.Text()
		if key == "" {
			origin := r.Text()
			if s = d.spaces[origin]; s == nil {
				s = &space{}
				d.spaces[origin] = s
			}
			last = s.last()
			continue
		}
		value := r.Bytes()
		r.Bad = r.Bad || s == nil || key <= last || inProc(key) || len(value) == 0
		if !r.Bad {
			s.load(key, value)
		}
		last = key
	}
	if r.Bad {
		return ErrSnapshot
	}
	return nil
}
