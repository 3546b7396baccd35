// Package capability keeps what each process may call: the registry of capability tokens (CAP 3).
package capability

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/tidwall/btree"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Registry is the domain of the capability tokens, at most one per process, and the view that others have of them. A
// token is immutable: a grant replaces it. It stays until it is revoked; an expired one allows nothing, but tells its
// holder what happened.
type Registry struct {
	kernel.Handlers
	pools     []string // names of the resources that a quota may name, ascending
	processes kernel.Processes
	reply     *schema.Type // of recorded

	registry kernel.Registry // see See
	tokens   *tokens
	view     view
	recent   kernel.Recent
}

var (
	_ kernel.Domain    = (*Registry)(nil)
	_ kernel.Publisher = (*Registry)(nil)
	_ kernel.Tokens    = (*Registry)(nil)
)

// New returns an empty registry. Quotas may name the given pools; processes are those that can be granted to.
func New(pools []string, processes kernel.Processes) *Registry {
	r := &Registry{
		pools:     slices.Compact(slices.Sorted(slices.Values(pools))),
		processes: processes,
		reply:     schema.TypeOf[recorded](),
	}
	r.Handlers = kernel.Bind(schema.Capability,
		kernel.Command(schema.CapabilityGrant, r.grant, func(e *kernel.Entry, _ *schema.GrantInput) { r.applyGranted(e, e.PID) }),
		kernel.Command(schema.CapabilityGrantDefault, r.grantDefault, func(e *kernel.Entry, _ *schema.GrantDefaultInput) { r.applyGranted(e, e.PID) }),
		kernel.Step(schema.CapabilityEndow, r.endow, func(e *kernel.Entry, _ *schema.EndowInput) { r.applyGranted(e, byParent) }),
		kernel.Command(schema.CapabilityRevoke, r.revoke, func(_ *kernel.Entry, in *schema.RevokeInput) { r.drop(in.PID) }),
		kernel.Command(schema.CapabilityRevokeExpired, r.revokeExpired, r.applyRevokeExpired),
		kernel.Question(schema.CapabilityWatch, r.watch),
		kernel.Step(schema.CapabilityRestore, r.decideRestore, r.applyRestore),
		kernel.Step(schema.CapabilityStrip, strip, func(_ *kernel.Entry, in *schema.StripInput) { r.drop(in.PIDs...) }),
	)
	r.Reset()
	r.Publish()
	return r
}

// See sets the view of registered syscalls. Without it no registered syscall can be granted.
func (r *Registry) See(registry kernel.Registry) { r.registry = registry }

// Holders returns the PIDs that have a token, ascending, so that recovery can remove those of
// processes that do not exist.
func (r *Registry) Holders() []int64 { return r.tokens.Keys() }

// applyGranted stores the token of a reply: what a default grant contains depends on the configuration of its time.
func (r *Registry) applyGranted(e *kernel.Entry, otherwise int64) {
	r.put(kernel.Reply[recorded](e, r.reply).token(otherwise))
}

func (r *Registry) put(t schema.Token) {
	r.tokens.Set(t.PID, &held{token: &kernel.Token{Granted: t}})
	r.view.changed = true
	r.changed(t.PID)
}

func (r *Registry) drop(pids ...int64) {
	for _, pid := range pids {
		r.tokens.Delete(pid)
		r.changed(pid)
	}
	r.view.changed = true
}

// recorded is a token in the journal. Older journals do not have its granter, nor that it does not expire.
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

// token returns the token, granted by otherwise if the journal does not say.
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

// watch answers Capability.Watch, including changes that are not published yet: callers are asked again after this
// command only.
func (r *Registry) watch(call *kernel.Call, in *schema.ListWatchInput) (schema.SuccessOutput, error) {
	out := schema.SuccessOutput{Success: true}
	var registered []string
	if r.registry != nil {
		registered = r.registry.RegisteredIn(call.Origin)
	}
	list := kernel.Callable(registered, call.PID, r.linked(r.tokens, call.PID), call.Tick)
	data, err := schema.Marshal(&list)
	if err != nil {
		return out, err
	}
	sum := sha256.Sum256(data)
	seen := hex.EncodeToString(sum[:])
	if seen == in.Seen {
		call.Park(kernel.Forever)
		return out, nil
	}
	call.Emit(kernel.Event{Type: schema.SyscallListed, Data: data})
	call.Follow(schema.CapabilityWatch.With(&schema.ListWatchInput{Seen: seen}))
	return out, nil
}

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
