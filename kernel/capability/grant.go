package capability

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// grant answers Capability.Grant: a living process is granted what the granter may give.
func (r *Registry) grant(call *kernel.Call, in *schema.GrantInput) (schema.GrantOutput, error) {
	grant, err := kernel.NewGrant(in, call.PID, r.pools, kernel.Known(r.registry, call.Origin))
	if err != nil {
		return schema.GrantOutput{}, err
	}
	if err := r.living(call, in.PID); err != nil {
		return schema.GrantOutput{}, err
	}
	if err := r.authority(call, "grant to", in.PID); err != nil {
		return schema.GrantOutput{}, err
	}
	if last := grant.ExpiresAtTick; last != nil && *last < call.Tick {
		return schema.GrantOutput{}, kernel.Invalid("expires_at_tick", "must not have passed: it is tick %d", call.Tick)
	}
	out := schema.GrantOutput{Token: schema.Token{PID: in.PID, TokenGrant: *grant}}
	if in.Adds() {
		if out.Token, err = r.added(in.PID, grant, call.Tick); err != nil {
			return schema.GrantOutput{}, err
		}
	}
	made := kernel.Token{Granted: out.Token}
	if call.PID != kernel.Operator {
		for _, g := range made.Grants() {
			if g.GrantedBy == call.PID {
				grant.ExpiresAtTick = g.ExpiresAtTick // which a grant that adds may leave as it was
			}
		}
		if err := call.Token.Covers(grant, call.Tick); err != nil {
			return schema.GrantOutput{}, err
		}
		made.Granter = call.Token
	} else if by := out.GrantedBy; by != kernel.Operator {
		made.Granter = r.linked(r.tokens, by)
	}
	if why := made.Ineffective(call.Tick); why != "" {
		out.Warning = fmt.Sprintf("no part of this grant is effective: %s", why)
	}
	return out, nil
}

// added returns the token of a process with one grant more. It is merged with that of the same
// granter. What the operator and what an agent granted are kept apart, since only the latter is
// reduced to what that agent may do.
func (r *Registry) added(pid int64, grant *schema.TokenGrant, tick int64) (schema.Token, *fault.Fault) {
	alone := schema.Token{PID: pid, TokenGrant: *grant}
	held := r.linked(r.tokens, pid)
	if held == nil {
		return alone, nil
	}
	var own, other *schema.TokenGrant
	for _, g := range held.Grants() {
		switch {
		case g.GrantedBy == grant.GrantedBy:
			own = g
		case g.GrantedBy != kernel.Operator && grant.GrantedBy != kernel.Operator:
			return alone, fault.CapabilityOtherGranter.New("pid %d may not add to what pid %d granted pid %d", grant.GrantedBy, g.GrantedBy, pid).
				WithFix("only that process and the operator may; mode replace takes its place")
		default:
			other = g
		}
	}
	if grant.ExpiresAtTick == nil && (held.Expired(tick) || own != nil && kernel.Expired(own, tick)) {
		return alone, kernel.Invalid("expires_at_tick", "is required: what is added to has expired, and would never expire again").
			WithFix("give it (--ttl 1h, --expires-at-tick), or replace the grant")
	}
	joined := kernel.Join(own, grant)
	if other == nil {
		return schema.Token{PID: pid, TokenGrant: *joined}, nil
	}
	return kernel.Beside(pid, other, joined), nil
}

// grantDefault answers Capability.GrantDefault: the same, with what CAP 3 says a process gets.
func (r *Registry) grantDefault(call *kernel.Call, in *schema.GrantDefaultInput) (schema.GrantOutput, error) {
	resources := in.Resources
	if resources == nil {
		resources = r.pools
	}
	for i, resource := range resources {
		if !slices.Contains(r.pools, resource) {
			return schema.GrantOutput{}, kernel.Invalid(fmt.Sprintf("resources[%d]", i), "is %q, which names no resource: %s", resource, kernel.Pools(r.pools))
		}
	}
	return r.grant(call, kernel.DefaultGrant(in.PID, resources))
}

// endow answers the kernel's Capability.Endow, a step on the way to a process that is not there yet. Whether its parent may
// give as much is for the process domain to say.
func (r *Registry) endow(_ *kernel.Call, in *schema.EndowInput) (schema.Token, error) {
	by := int64(kernel.Operator)
	if in.GrantedBy != nil {
		by = *in.GrantedBy
	}
	grant, err := kernel.NewGrant(&in.GrantInput, by, r.pools, schema.Registrable) // as the process domain has judged it
	if err != nil {
		return schema.Token{}, err
	}
	return schema.Token{PID: in.PID, TokenGrant: *grant}, nil
}

// living returns an error unless pid is a process that has not ended.
func (r *Registry) living(call *kernel.Call, pid int64) *fault.Fault {
	switch p := kernel.Visible(r.processes, call, pid); {
	case p == nil:
		return kernel.NoProcess(pid)
	case p.State == "TERMINATED":
		return fault.ProcessIsEnded.New("pid %d has ended: nothing can be granted to it", pid).With("pid", strconv.FormatInt(pid, 10))
	}
	return nil
}

// authority returns an error if an agent reaches beyond its own descendants. A grant can replace an
// earlier one, so an agent that could grant to any process could take rights away from any,
// including its parent. Over its descendants an agent has that power already, since it may end
// them.
func (r *Registry) authority(call *kernel.Call, verb string, pid int64) *fault.Fault {
	if call.PID == kernel.Operator || kernel.Descends(r.processes, pid, call.PID) {
		return nil
	}
	return fault.CapabilityNotYours.New("pid %d may not %s pid %d: it is none of its descendants; the operator may", call.PID, verb, pid).
		With("pid", strconv.FormatInt(pid, 10))
}
