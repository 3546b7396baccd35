// Package capability keeps who may call what: the registry of capability tokens (CAP 3).
package capability

import (
	"fmt"
	"maps"
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

	tokens map[int64]*kernel.Token
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
			token:   schema.TypeOf[schema.Token](),
			expired: schema.TypeOf[schema.RevokeExpiredOutput](),
			chunk:   schema.TypeOf[[]schema.Token](),
		},
	}
	r.Reset()
	return r
}

// Decide answers the syscalls of schema.Capability.
func (r *Registry) Decide(call *kernel.Call) (kernel.Result, error) {
	switch in := call.Input.(type) {
	case *schema.GrantInput:
		if call.Syscall.Internal {
			return r.endow(in)
		}
		return r.grant(call, in)
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
		r.put(&kernel.Token{Token: *read(r.forms.token, call).(*schema.Token)})
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
func (r *Registry) Holders() []int64 { return slices.Sorted(maps.Keys(r.tokens)) }

func (r *Registry) put(t *kernel.Token) {
	r.tokens[t.PID] = t
	r.view.touch(t.PID)
}

func (r *Registry) drop(pid int64) {
	delete(r.tokens, pid)
	r.view.touch(pid)
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
