package kernel

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// DefaultQuota is how many units of a resource a default grant allows (CAP 3).
const DefaultQuota = 200.0

// DefaultGrant is the grant of a process of which nobody said what it may do: the ten syscalls of CAP 1,
// Ipc.Receive, so that who may send can be answered, and DefaultQuota of each of the given resources (CAP 3).
func DefaultGrant(pid int64, resources []string) *schema.GrantInput {
	grant := &schema.GrantInput{
		PID: pid,
		AllowedSyscalls: []string{
			"Ipc.Receive", "SYS_ALLOC", "SYS_CHECKPOINT", "SYS_COMMIT_DELTA", "SYS_GET_STATE", "SYS_QUERY",
			"SYS_RELEASE", "SYS_ROLLBACK", "SYS_SEND_MSG", "SYS_SPAWN", "SYS_TERMINATE",
		},
		ResourceQuotas: make(map[string]float64, len(resources)),
	}
	for _, resource := range resources {
		grant.ResourceQuotas[resource] = DefaultQuota
	}
	return grant
}

// NewGrant returns the grant that by asks for, in canonical form: what is allowed sorted and named once, nothing
// nil. Names that mean nothing are refused, since a grant that silently does nothing costs its holder a denial later:
// pools are the resources that there are, known tells a registered syscall (see Known).
func NewGrant(grant *schema.GrantInput, by int64, pools []string, known ...func(name string) bool) (*schema.TokenGrant, *fault.Fault) {
	t := &schema.TokenGrant{
		GrantedBy:       by,
		AllowedSyscalls: append([]string{}, grant.AllowedSyscalls...),
		ResourceQuotas:  make(map[string]float64, len(grant.ResourceQuotas)),
	}
	for i, pattern := range grant.AllowedSyscalls {
		if slices.ContainsFunc(known, func(registered func(string) bool) bool { return registered(pattern) }) {
			continue
		}
		if why := meaningless(pattern); why != "" {
			return nil, Invalid(fmt.Sprintf("allowed_syscalls[%d]", i), "is %q: %s", pattern, why)
		}
	}
	slices.Sort(t.AllowedSyscalls)
	t.AllowedSyscalls = slices.Compact(t.AllowedSyscalls)
	for _, resource := range slices.Sorted(maps.Keys(grant.ResourceQuotas)) {
		if !slices.Contains(pools, resource) {
			return nil, Invalid("resource_quotas."+resource, "names no resource: %s", Pools(pools))
		}
		t.ResourceQuotas[resource] = grant.ResourceQuotas[resource] + 0 // turns -0 into 0
	}
	if grant.ExpiresAtTick != nil {
		last := *grant.ExpiresAtTick
		t.ExpiresAtTick = &last
	}
	var err *fault.Fault
	if t.HTTP, err = httpOf(grant.HTTP); err == nil {
		err = checkBudget(grant.Budget)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// meaningless says why a pattern can be no part of a grant, nothing where it can.
func meaningless(pattern string) string {
	if pattern == everything {
		return ""
	}
	if wild(pattern) {
		prefix := strings.TrimSuffix(pattern, "*")
		if slices.ContainsFunc(schema.Syscalls(), func(row *schema.Syscall) bool {
			return !row.Internal && strings.HasPrefix(row.Type, prefix)
		}) {
			return ""
		}
		return "no syscall begins with " + prefix
	}
	if _, rest, ok := named(pattern); ok {
		return meaninglessName(rest)
	}
	switch row, ok := Named(pattern); {
	case !ok:
		return "no syscall has this type or code: Syscall.List names them, Domain.* stands for all of a domain, * for all"
	case row.Grant == schema.OperatorOnly:
		return "only the operator may call it, whatever is granted"
	}
	return ""
}

// meaninglessName says what is wrong with what follows Call:, Tool: or Upstream:, nothing where that is nothing.
func meaninglessName(name string) string {
	rest, tree := strings.CutSuffix(name, everything)
	switch {
	case name == "" || strings.Contains(rest, everything):
		return "a name or a path follows the colon, and * may stand at its end alone"
	case tree && rest != "" && !strings.HasSuffix(rest, "/"):
		return "* stands for all below a path, and follows a slash"
	case strings.HasPrefix(name, "/") || strings.Contains(name, "//"):
		return "a path below root begins with its first part, such as mcp/fs/read, and has no empty part"
	}
	return ""
}

// Pools says which resources there are, for who named another.
func Pools(pools []string) string {
	const most = 20 // enough to find a misspelling, little enough to read
	switch {
	case len(pools) == 0:
		return "the configuration has no resource pools, which stand in its table [resources]"
	case len(pools) > most:
		return fmt.Sprintf("there are %s and %d more", strings.Join(pools[:most], ", "), len(pools)-most)
	}
	return "there are " + strings.Join(pools, ", ")
}

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
