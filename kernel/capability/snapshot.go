package capability

import (
	"github.com/tidwall/btree"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

var records = kernel.RecordsOf[schema.Token]()

// Snapshot implements kernel.Domain: the tokens by ascending PID.
func (r *Registry) Snapshot() func(write func(chunk []byte) error) error {
	tokens := r.tokens.Copy()
	return records.Writer(func(yield func(schema.Token) bool) {
		tokens.Scan(func(_ int64, h *held) bool { return yield(h.token.Granted) })
	})
}

// Reset implements kernel.Domain.
func (r *Registry) Reset() {
	r.tokens = btree.NewMap[int64, *held](0)
	r.view.changed = true
	r.recent.Reset()
}

// Restore implements kernel.Domain.
func (r *Registry) Restore(chunk []byte) error {
	return records.Read(chunk, func(token *schema.Token) error {
		r.put(*token)
		return nil
	})
}
