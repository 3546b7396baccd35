package capability

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tidwall/btree"

	"github.com/promptware-os/pwos/schema"
)

// chunkTokens is how many tokens a chunk of a snapshot holds.
const chunkTokens = 1000

// Snapshot implements kernel.Domain: chunks of tokens, as JSON arrays, by ascending PID.
func (r *Registry) Snapshot() func(write func(chunk []byte) error) error {
	all := r.tokens.Copy()
	return func(write func(chunk []byte) error) error {
		for part := range slices.Chunk(all.Values(), chunkTokens) {
			list := make([]schema.Token, len(part))
			for i, h := range part {
				list[i] = h.token.Granted
			}
			chunk, err := schema.Marshal(list)
			if err != nil {
				return fmt.Errorf("snapshot tokens: %w", err)
			}
			if err := write(chunk); err != nil {
				return fmt.Errorf("snapshot tokens: %w", err)
			}
		}
		return nil
	}
}

// Reset implements kernel.Domain.
func (r *Registry) Reset() {
	r.tokens = btree.NewMap[int64, *held](0)
	r.view.changed = true
}

// Restore implements kernel.Domain.
func (r *Registry) Restore(chunk []byte) error {
	if !schema.Valid(chunk) {
		return errors.New("restore tokens: chunk is no JSON")
	}
	list, err := schema.TypeOf[[]schema.Token]().Decode(chunk)
	if err != nil {
		return fmt.Errorf("restore tokens: %w", err)
	}
	for _, token := range *list.(*[]schema.Token) {
		r.put(token)
	}
	return nil
}
