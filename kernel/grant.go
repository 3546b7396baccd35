package kernel

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// DefaultQuota is how many units of a resource a default grant allows (CAP 3).
const DefaultQuota = 200.0

// DefaultGrant is the grant of a process that was spawned without one: the ten syscalls of CAP 1, Ipc.Receive, so
// that a process that may send can be answered, and DefaultQuota of each of the given resources (CAP 3).
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

// NewGrant returns the grant that is asked for, in canonical form: lists sorted and without duplicates, nothing nil.
// It refuses unknown names, since a grant without effect would cost its holder a denial later: pools are the known
// resources, known finds a registered syscall (see Known).
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

// meaningless says why a pattern cannot be part of a grant, "" if it can.
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
	switch word, rest, ok := splitPattern(pattern); {
	case word == localhostWord:
		if _, ok := schema.LocalhostPort(pattern); !ok {
			return "a port from 1 to 65535 follows the colon"
		}
		return ""
	case ok:
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

// meaninglessName says what is wrong with the rest of a pattern after Call:, Tool: or Upstream:, "" if nothing is.
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

// Pools names the known resources, for an error about an unknown one.
func Pools(pools []string) string {
	const most = 20 // enough to find a misspelling, and still readable
	switch {
	case len(pools) == 0:
		return "the configuration has no resource pools; they belong in its table [resources]"
	case len(pools) > most:
		return fmt.Sprintf("there are %s and %d more", strings.Join(pools[:most], ", "), len(pools)-most)
	}
	return "there are " + strings.Join(pools, ", ")
}

// Join adds a grant to an earlier one of the same granter (PROTOCOL 5): syscalls and hosts of both, the later quota
// of a resource, and the earlier expiry if the later grant has none. It changes neither; earlier may be nil.
func Join(earlier, later *schema.TokenGrant) *schema.TokenGrant {
	if earlier == nil {
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

// Beside returns the token of a process with a grant of the operator and one of an agent. Of two quotas of one
// resource the operator's counts, unless an agent has granted a larger one: only one of them is used.
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
	sum := *Join(operator, agent)
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

// union merges two lists, sorted and without duplicates.
func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

// Budgets is a view of the budgets that processes were given.
type Budgets interface {
	// Same reports whether a process was given exactly this.
	Same(pid int64, budget *schema.BudgetGrant) bool
}

// MicroUSD is an amount of US dollars in millionths.
func MicroUSD(usd float64) int64 { return int64(math.Round(usd * 1e6)) }

// checkBudget returns what is wrong with a requested budget.
func checkBudget(b *schema.BudgetGrant) *fault.Fault {
	if b == nil || b.USD == nil {
		return nil
	}
	if millionths := *b.USD * 1e6; math.Abs(millionths-math.Round(millionths)) > millionths*1e-15 { // not a whole number of millionths, beyond the rounding of a float64
		return Invalid("budget.usd", "must have at most six decimals")
	}
	return nil
}
