package capability

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// chunkTokens is how many tokens a chunk of a snapshot holds.
const chunkTokens = 1000

// Snapshot implements kernel.Domain: chunks of tokens, as JSON arrays, by ascending PID.
func (r *Registry) Snapshot() func(write func(chunk []byte) error) error {
	tokens := make([]*kernel.Token, 0, len(r.tokens))
	for _, token := range r.tokens {
		tokens = append(tokens, token)
	}
	return func(write func(chunk []byte) error) error {
		slices.SortFunc(tokens, func(a, b *kernel.Token) int { return cmp.Compare(a.PID, b.PID) })
		for part := range slices.Chunk(tokens, chunkTokens) {
			list := make([]schema.Token, len(part))
			for i, token := range part {
				list[i] = token.Token
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
	r.tokens = map[int64]*kernel.Token{}
	r.view.all, r.view.touched = true, nil
}

// Restore implements kernel.Domain.
func (r *Registry) Restore(chunk []byte) error {
	if !schema.Valid(chunk) {
		return errors.New("restore tokens: chunk is no JSON")
	}
	list, err := r.forms.chunk.Decode(chunk)
	if err != nil {
		return fmt.Errorf("restore tokens: %w", err)
	}
	for _, token := range *list.(*[]schema.Token) {
		r.put(&kernel.Token{Token: token})
	}
	return nil
}
