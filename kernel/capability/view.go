package capability

import (
	"sync/atomic"

	"github.com/tidwall/btree"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// held is what the registry keeps of a token. It is immutable but for what it remembers of itself: the token linked to that of
// its granter, which stands until the granter's is another.
type held struct {
	token  *kernel.Token // not linked
	linked atomic.Pointer[kernel.Token]
}

// tokens are the tokens of one moment, by PID. A copy takes constant time, and what is copied never changes.
type tokens = btree.Map[int64, *held]

// view is the tokens as other domains see them. Token may be called at any time from anywhere, the rest is the registry's.
//
// All of it changes at once: a token is read with those that it was granted from as they were at the same moment. Of two
// changes that follow one another nobody sees the second without the first.
type view struct {
	shown   atomic.Pointer[tokens]
	changed bool // since the last publication
}

// Token implements kernel.Tokens: the token of pid as it was last published.
func (r *Registry) Token(pid int64) *kernel.Token { return r.linked(r.view.shown.Load(), pid) }

// linked returns the token of pid with those above it, nil where it has none. It allocates only where one of them has
// changed since it was asked for last.
func (r *Registry) linked(all *tokens, pid int64) *kernel.Token {
	h, ok := all.Get(pid)
	if !ok {
		return nil
	}
	by := r.granter(&h.token.Granted)
	if by == kernel.Operator && h.token.Granted.GrantedBy == by {
		return h.token
	}
	var granter *kernel.Token
	if by != kernel.Operator && by < pid { // a granter is an ancestor, and so older
		granter = r.linked(all, by)
	}
	if was := h.linked.Load(); was != nil && was.Granter == granter {
		return was
	}
	t := &kernel.Token{Granted: h.token.Granted, Granter: granter}
	t.Granted.GrantedBy = by
	h.linked.Store(t)
	return t
}

// byParent stands for the granter of a token that a journal gave a new process before granters were noted: its parent, who
// spawned it.
const byParent = -1

// granter returns the agent among those that granted a token, the operator where there is none.
func (r *Registry) granter(t *schema.Token) int64 {
	if t.GrantedBy != byParent {
		return t.GrantedBy
	}
	if p := r.processes.Process(t.PID); p != nil {
		return p.ParentPID
	}
	return t.PID // nobody's: the process is not there
}

// Publish implements kernel.Publisher. A Token that begins after it has returned gives nobody a token that was revoked or
// replaced before.
func (r *Registry) Publish() {
	if r.view.changed {
		r.view.shown.Store(r.tokens.Copy())
		r.view.changed = false
	}
}
