package capability

import (
	"sync/atomic"

	"github.com/tidwall/btree"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// held is the registry's record of a token. It is immutable except for a cache: the token linked to
// that of its granter, valid until the granter's token changes.
type held struct {
	token  *kernel.Token // not linked
	linked atomic.Pointer[kernel.Token]
}

// tokens are the tokens of one moment, by PID. Copying takes constant time, and a copy never changes.
type tokens = btree.Map[int64, *held]

// view is the tokens as other domains see them. Token may be called at any time from any goroutine; the registry
// calls the rest.
//
// All of it changes at once: a token is read with those of its granters as they were at the same moment, and changes
// become visible in their order.
type view struct {
	shown   atomic.Pointer[tokens]
	changed bool // since the last Publish
}

// Token implements kernel.Tokens: the token of pid as last published.
func (r *Registry) Token(pid int64) *kernel.Token { return r.linked(r.view.shown.Load(), pid) }

// linked returns the token of pid linked to those of its granters, or nil. It allocates only if one
// of them has changed since the last call.
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

// byParent marks a token from before granters were recorded: its granter is the parent that spawned
// the process.
const byParent = -1

// granter returns the agent among those that granted a token, the operator if there is none.
func (r *Registry) granter(t *schema.Token) int64 {
	if t.GrantedBy != byParent {
		return t.GrantedBy
	}
	if p := r.processes.Process(t.PID); p != nil {
		return p.ParentPID
	}
	return t.PID // the process does not exist
}

// Publish implements kernel.Publisher. After it returns, Token gives no token that was revoked or replaced before.
func (r *Registry) Publish() {
	if r.view.changed {
		r.view.shown.Store(r.tokens.Copy())
		r.view.changed = false
	}
	r.recent.Publish()
}
