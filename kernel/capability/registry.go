// Package capability keeps who may call what: the registry of capability tokens (CAP 3).
package capability

import (
	"fmt"
	"slices"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Registry is the domain of the capability tokens, at most one a process, and the view that others have of them. A token
// is an immutable value: a grant puts another in its place. It holds for as long as nobody takes it away; an expired one
// stays, so that its holder is told what happened, and allows nothing.
type Registry struct {
	pools     []string // names of the resources that a quota may name, ascending
	processes kernel.Processes

	tokens *tokens
	view   view
	forms  forms
}

// forms describe what the registry reads back of what it has written.
type forms struct{ token, expired, chunk *schema.Type }

var (
	_ kernel.Domain    = (*Registry)(nil)
	_ kernel.Publisher = (*Registry)(nil)
	_ kernel.Tokens    = (*Registry)(nil)
)

// New returns an empty registry. Quotas may name the given pools; processes says who is there to be granted to.
func New(pools []string, processes kernel.Processes) *Registry {
	r := &Registry{
		pools:     slices.Compact(slices.Sorted(slices.Values(pools))),
		processes: processes,
		forms: forms{
			token:   schema.TypeOf[recorded](),
			expired: schema.TypeOf[schema.RevokeExpiredOutput](),
			chunk:   schema.TypeOf[[]schema.Token](),
		},
	}
	r.Reset()
	r.Publish()
	return r
}

// Decide answers the syscalls of schema.Capability.
func (r *Registry) Decide(call *kernel.Call) (kernel.Result, error) {
	switch in := call.Input.(type) {
	case *schema.GrantInput:
		return r.grant(call, in)
	case *schema.EndowInput:
		return r.endow(in)
	case *schema.GrantDefaultInput:
		return r.grantDefault(call, in)
	case *schema.RevokeInput:
		return r.revoke(call, in.PID)
	case *schema.RevokeExpiredInput:
		return answer(schema.RevokeExpiredOutput{Revoked: r.expired(call)})
	case *schema.StripInput:
		return answer(schema.SuccessOutput{Success: true})
	}
	return kernel.Result{}, fmt.Errorf("decide %s: no meaning for %T", call.Message.Type, call.Input)
}

// Apply puts tokens in place and takes them away, as the answers say: what a default grant comes to depends on the
// configuration of its day, how many expired tokens go at once on the length of a line.
func (r *Registry) Apply(call *kernel.Call) {
	switch in := call.Input.(type) {
	case *schema.GrantInput, *schema.GrantDefaultInput:
		r.put(read(r.forms.token, call).(*recorded).token(call.PID))
	case *schema.EndowInput:
		r.put(read(r.forms.token, call).(*recorded).token(byParent))
	case *schema.RevokeInput:
		r.drop(in.PID)
	case *schema.RevokeExpiredInput:
		for _, pid := range read(r.forms.expired, call).(*schema.RevokeExpiredOutput).Revoked {
			r.drop(pid)
		}
	case *schema.StripInput:
		for _, pid := range in.PIDs {
			r.drop(pid)
		}
	}
}

// Holders returns the PIDs that have a token, ascending: recovery takes away what belongs to nobody alive.
func (r *Registry) Holders() []int64 { return r.tokens.Keys() }

func (r *Registry) put(t schema.Token) {
	r.tokens.Set(t.PID, &held{token: &kernel.Token{Granted: t}})
	r.view.changed = true
}

func (r *Registry) drop(pid int64) {
	r.tokens.Delete(pid)
	r.view.changed = true
}

// recorded is a token as the journal has it. Older journals do not say who granted it, nor that it does not expire.
type recorded struct {
	PID             int64               `json:"pid"`
	GrantedBy       *int64              `json:"granted_by,omitzero"`
	AllowedSyscalls []string            `json:"allowed_syscalls"`
	ResourceQuotas  map[string]float64  `json:"resource_quotas"`
	ExpiresAtTick   *int64              `json:"expires_at_tick,omitzero" null:"allowed"`
	HTTP            *schema.HTTPGrant   `json:"http,omitzero"`
	Grants          []schema.TokenGrant `json:"grants,omitzero"`
	Warning         string              `json:"warning,omitzero"`
}

// token returns the token, granted by otherwise where the journal does not say.
func (t *recorded) token(otherwise int64) schema.Token {
	if t.GrantedBy != nil {
		otherwise = *t.GrantedBy
	}
	return schema.Token{
		PID: t.PID, Grants: t.Grants,
		TokenGrant: schema.TokenGrant{
			GrantedBy: otherwise, AllowedSyscalls: t.AllowedSyscalls, ResourceQuotas: t.ResourceQuotas,
			ExpiresAtTick: t.ExpiresAtTick, HTTP: t.HTTP,
		},
	}
}

// read decodes an answer of Decide. One that it cannot have written stops the kernel: the journal holds another's.
func read(form *schema.Type, call *kernel.Call) any {
	data, err := form.Decode(call.Data)
	if err != nil {
		panic(fmt.Sprintf("capability: apply %s: %v", call.Message.Type, err))
	}
	return data
}

func answer(data any) (kernel.Result, error) {
	raw, err := schema.Marshal(data)
	return kernel.Result{Data: raw}, err
}
