package kernel

import (
	"maps"
	"slices"

	"github.com/promptware-os/pwos/schema"
)

// Join returns a grant with one of the same granter added to it (PROTOCOL 5): syscalls and hosts of both, a quota of the
// later in place of the earlier one's of the same resource, and the earlier expiry where the later has none. What has expired
// at tick is not added to, unless the later has an expiry to renew it with. None of the two is changed; earlier may be nil.
func Join(earlier, later *schema.TokenGrant, tick int64) *schema.TokenGrant {
	if earlier == nil || (expired(earlier, tick) && later.ExpiresAtTick == nil) {
		return later
	}
	joined := *later
	joined.AllowedSyscalls = union(earlier.AllowedSyscalls, later.AllowedSyscalls)
	joined.ResourceQuotas = maps.Clone(earlier.ResourceQuotas)
	maps.Copy(joined.ResourceQuotas, later.ResourceQuotas)
	if later.ExpiresAtTick == nil {
		joined.ExpiresAtTick = earlier.ExpiresAtTick
	}
	switch {
	case later.HTTP == nil:
		joined.HTTP = earlier.HTTP
	case earlier.HTTP != nil:
		joined.HTTP = &schema.HTTPGrant{
			Hosts: union(earlier.HTTP.Hosts, later.HTTP.Hosts),
			Plain: earlier.HTTP.Plain || later.HTTP.Plain, Open: earlier.HTTP.Open || later.HTTP.Open,
		}
	}
	return &joined
}

// Beside returns the token of a process that has a grant of the operator's and one of an agent's. Of two quotas of one
// resource the operator's stands, unless an agent has added a larger one: a process holds by one of them.
func Beside(pid int64, held, added *schema.TokenGrant) schema.Token {
	held, added = cloned(held), cloned(added)
	for resource, amount := range added.ResourceQuotas {
		switch before, both := held.ResourceQuotas[resource]; {
		case !both:
		case added.GrantedBy == Operator || amount > before:
			delete(held.ResourceQuotas, resource)
		default:
			delete(added.ResourceQuotas, resource)
		}
	}
	operator, agent := held, added
	if agent.GrantedBy == Operator {
		operator, agent = agent, operator
	}
	sum := *Join(operator, agent, 0)
	sum.ExpiresAtTick = nil
	if operator.ExpiresAtTick != nil && agent.ExpiresAtTick != nil {
		last := max(*operator.ExpiresAtTick, *agent.ExpiresAtTick)
		sum.ExpiresAtTick = &last
	}
	return schema.Token{PID: pid, TokenGrant: sum, Grants: []schema.TokenGrant{*operator, *agent}}
}

func cloned(g *schema.TokenGrant) *schema.TokenGrant {
	clone := *g
	clone.ResourceQuotas = maps.Clone(g.ResourceQuotas)
	return &clone
}

// union returns what two lists name, sorted and named once.
func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}
