package kernel

import (
	"maps"
	"math"
	"slices"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Token is what a process may do (CAP 2): its grants, reduced to what the granter may do at the
// same moment. It is immutable: a grant replaces it, and the tokens that depend on it.
//
// A token has one grant, or two if both the operator and an ancestor have granted. The operator's
// counts in full, an ancestor's as far as the ancestor's own token allows. So a check walks up the
// granters, and ends at the first grant of the operator that allows the call.
type Token struct {
	Granted schema.Token
	Granter *Token // of the ancestor that granted, or nil if none did or it has lost its token
}

// PID is the process that holds the token.
func (t *Token) PID() int64 { return t.Granted.PID }

// Grants returns the grants of the token. They must not be changed.
func (t *Token) Grants() []*schema.TokenGrant {
	list := make([]*schema.TokenGrant, t.grantCount())
	for i := range list {
		list[i] = t.grant(i)
	}
	return list
}

// grantCount returns the number of grants, and grant the i-th of them.
func (t *Token) grantCount() int { return max(1, len(t.Granted.Grants)) }

func (t *Token) grant(i int) *schema.TokenGrant {
	if len(t.Granted.Grants) == 0 {
		return &t.Granted.TokenGrant
	}
	return &t.Granted.Grants[i]
}

// Expired reports whether a grant has expired at tick (CAP 2: tick > expires_at_tick).
func Expired(g *schema.TokenGrant, tick int64) bool {
	return g.ExpiresAtTick != nil && tick > *g.ExpiresAtTick
}

// Expired reports whether all grants of the token have expired at tick. It does not look at the granters.
func (t *Token) Expired(tick int64) bool {
	for i := range t.grantCount() {
		if !Expired(t.grant(i), tick) {
			return false
		}
	}
	return true
}

// may reports whether the token has a grant for which allows returns true.
func (t *Token) may(tick int64, allows func(*schema.TokenGrant) bool) bool {
	return t.walk(tick, allows, func(*Token, *schema.TokenGrant) {})
}

// walk is may; it also calls by with each token on the way up and the grant of it that allows.
func (t *Token) walk(tick int64, allows func(*schema.TokenGrant) bool, by func(*Token, *schema.TokenGrant)) bool {
	for t != nil {
		var next *Token
		var grant *schema.TokenGrant
		for i := range t.grantCount() {
			g := t.grant(i)
			if Expired(g, tick) || !allows(g) {
				continue
			}
			if g.GrantedBy == Operator {
				by(t, g)
				return true
			}
			next, grant = t.Granter, g
		}
		if grant != nil {
			by(t, grant)
		}
		t = next
	}
	return false
}

// Allows reports whether the syscall may be called at tick: a grant names it by type, by code, by domain or by *. The
// last two do not include syscalls that are granted by name only.
func (t *Token) Allows(row *schema.Syscall, tick int64) bool {
	return t.may(tick, func(g *schema.TokenGrant) bool { return grantNames(g, row) })
}

// AllowsNamed reports whether a grant includes a pattern such as Call:mcp/fs/read or Upstream:openai at tick.
func (t *Token) AllowsNamed(name string, tick int64) bool {
	return t.may(tick, func(g *schema.TokenGrant) bool { return anyCovers(g.AllowedSyscalls, name) })
}

// grantNames reports whether a grant names the syscall. A grant of user-space syscalls names Syscall.Call, one of tools
// Host.ToolUse; which of them is checked if the name is known.
func grantNames(g *schema.TokenGrant, row *schema.Syscall) bool { return naming(g, row) != "" }

// naming is the first pattern of a grant that names the syscall, "" if none does.
func naming(g *schema.TokenGrant, row *schema.Syscall) string {
	if row == schema.StepBegin.Row() || row == schema.StepEnd.Row() || row == schema.PromptSubmit.Row() { // a host that may ask to use a tool may say when it does
		if pattern := naming(g, schema.HostToolUse.Row()); pattern != "" {
			return pattern
		}
	}
	some := row.Type == schema.CallType || row.Type == schema.HostToolUse.Type
	for _, pattern := range g.AllowedSyscalls {
		if matches(pattern, row) {
			return pattern
		}
		if some {
			if word, _, ok := splitPattern(pattern); ok && behind(word) == row.Type {
				return pattern
			}
		}
	}
	return ""
}

// Quota returns how many units of a resource the holder may use at tick, together with the processes that it grants
// to; none if the token does not name it.
func (t *Token) Quota(resource string, tick int64) float64 {
	most := math.Inf(1)
	for ; t != nil; t = t.Granter {
		g := t.QuotaGrant(resource)
		if g == nil || Expired(g, tick) {
			return 0
		}
		if most = min(most, g.ResourceQuotas[resource]); g.GrantedBy == Operator {
			return most
		}
	}
	return 0
}

// QuotaGrant returns the grant that names a resource, nil if none does. Two grants never name the same.
func (t *Token) QuotaGrant(resource string) *schema.TokenGrant {
	for i := range t.grantCount() {
		if _, ok := t.grant(i).ResourceQuotas[resource]; ok {
			return t.grant(i)
		}
	}
	return nil
}

// missing returns the first token on the way up without a grant for which allows returns true, nil if its granter has
// no token, and the PID of that token. It is called after may returned false.
func (t *Token) missing(tick int64, allows func(*schema.TokenGrant) bool) (*Token, int64) {
	for {
		var granter int64
		for i := range t.grantCount() {
			if g := t.grant(i); !Expired(g, tick) && allows(g) {
				granter = g.GrantedBy
			}
		}
		if granter == Operator || t.Granter == nil {
			if granter != Operator {
				return nil, granter
			}
			return t, t.PID()
		}
		t = t.Granter
	}
}

// Last returns the last tick at which any grant of the token is valid, nil if it does not expire.
func (t *Token) Last() *int64 {
	var last *int64
	for i := range t.grantCount() {
		g := t.grant(i)
		until := g.ExpiresAtTick
		if g.GrantedBy != Operator && t.Granter != nil {
			if above := t.Granter.Last(); until == nil || (above != nil && *above < *until) {
				until = above
			}
		}
		if until == nil {
			return nil
		}
		if last == nil || *until > *last {
			last = until
		}
	}
	return last
}

// holdMore is the advice about a grant that exceeds the granter's own.
const holdMore = "grant less, or have the operator grant it"

// Covers returns an error that names the first thing in a grant that t does not allow at tick: a
// granter grants at most what it may do itself (PROTOCOL 5).
func (t *Token) Covers(g *schema.TokenGrant, tick int64) *fault.Fault {
	held := make(map[*schema.TokenGrant]*patterns) // of the granters
	for _, pattern := range g.AllowedSyscalls {
		if row, ok := Named(pattern); ok && row.Grant == schema.Everyone {
			continue
		}
		if !t.may(tick, func(g *schema.TokenGrant) bool {
			if held[g] == nil {
				held[g] = patternsOf(g.AllowedSyscalls)
			}
			return held[g].cover(pattern)
		}) {
			return fault.CapabilityTooMuch.New("pid %d may not grant %s: it does not hold it itself", t.PID(), pattern).WithFix(holdMore)
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(g.ResourceQuotas)) {
		if amount, own := g.ResourceQuotas[resource], t.Quota(resource, tick); amount > own {
			return fault.CapabilityTooMuch.New("pid %d may not grant a quota of %s of %s: its own is %s",
				t.PID(), units(amount), resource, units(own)).WithFix(holdMore)
		}
	}
	if last := t.Last(); last != nil && (g.ExpiresAtTick == nil || *g.ExpiresAtTick > *last) {
		return fault.CapabilityTooMuch.New("pid %d may not grant beyond tick %d, the last of its own token", t.PID(), *last).
			WithFix("set expires_at_tick to that or less")
	}
	return t.coversHTTP(g.HTTP, tick)
}

// Effective returns what the token allows at tick, as one grant.
func (t *Token) Effective(tick int64) schema.Effective {
	e := schema.Effective{AllowedSyscalls: []string{}, ResourceQuotas: map[string]float64{}, ExpiresAtTick: t.Last()}
	for i := range t.grantCount() {
		g := t.grant(i)
		switch {
		case Expired(g, tick):
			continue
		case g.GrantedBy == Operator:
			e.AllowedSyscalls = append(e.AllowedSyscalls, g.AllowedSyscalls...)
		case t.Granter != nil:
			e.AllowedSyscalls = append(e.AllowedSyscalls, meet(g.AllowedSyscalls, t.Granter.Effective(tick).AllowedSyscalls)...)
		}
		for resource := range g.ResourceQuotas {
			if amount := t.Quota(resource, tick); amount > 0 {
				e.ResourceQuotas[resource] = amount
			}
		}
	}
	slices.Sort(e.AllowedSyscalls)
	e.AllowedSyscalls = slices.Compact(e.AllowedSyscalls)
	e.HTTP = sumHTTP(t.Fetch(tick))
	return e
}

// Cut returns what a child is to be granted without what the holder does not have itself at tick.
func (t *Token) Cut(asked *schema.SpawnCapability, tick int64) *schema.SpawnCapability {
	own := t.Effective(tick)
	less := *asked
	less.AllowedSyscalls = meet(slices.Sorted(slices.Values(asked.AllowedSyscalls)), own.AllowedSyscalls)
	less.ResourceQuotas = make(map[string]float64, len(asked.ResourceQuotas))
	for resource, amount := range asked.ResourceQuotas {
		if amount = min(amount, own.ResourceQuotas[resource]); amount > 0 {
			less.ResourceQuotas[resource] = amount
		}
	}
	if last := own.ExpiresAtTick; last != nil && (asked.ExpiresAtTick == nil || *asked.ExpiresAtTick > *last) {
		less.ExpiresAtTick = last
	}
	switch {
	case asked.HTTP == nil:
	case own.HTTP == nil:
		less.HTTP = nil
	default:
		less.HTTP = new(meetHTTP(asked.HTTP, own.HTTP))
	}
	return &less
}

// Ineffective says why nothing that a token grants is effective at tick, "" if something is.
func (t *Token) Ineffective(tick int64) string {
	e := t.Effective(tick)
	switch {
	case len(e.AllowedSyscalls) > 0 || len(e.ResourceQuotas) > 0 || e.HTTP != nil:
		return ""
	case len(t.Granted.AllowedSyscalls) == 0 && len(t.Granted.ResourceQuotas) == 0 && t.Granted.HTTP == nil:
		return "" // the grant is empty, as requested
	}
	return "its granter may do nothing of it itself"
}

// AllowsUpstream reports whether the holder may use the upstream at tick. * does not include upstreams: the
// credential of one is granted by its name, or by Upstream:* for all.
func (t *Token) AllowsUpstream(name string, tick int64) bool {
	return t.AllowsNamed(upstreamWord+":"+name, tick)
}

// UpstreamLacking returns the PID of the first token, from that of pid upwards, that does not name
// the upstream, and needs it added.
func (t *Token) UpstreamLacking(pid, tick int64, name string) int64 {
	return t.lacking(pid, tick, func(g *schema.TokenGrant) bool { return anyCovers(g.AllowedSyscalls, upstreamWord+":"+name) })
}

// AllowsLocalhost reports whether the holder may connect to a port of this machine's loopback at tick. Only its number grants that.
func (t *Token) AllowsLocalhost(port uint16, tick int64) bool {
	return t.AllowsNamed(schema.Localhost(port), tick)
}

// LocalhostLacking returns the PID of the first token, from that of pid upwards, that does not name the port, and needs it
// added.
func (t *Token) LocalhostLacking(pid, tick int64, port uint16) int64 {
	return t.lacking(pid, tick, func(g *schema.TokenGrant) bool { return anyCovers(g.AllowedSyscalls, schema.Localhost(port)) })
}

// Localhosts returns the ports of this machine's loopback that the holder may connect to at tick.
func (t *Token) Localhosts(tick int64) (ports []uint16) {
	if t == nil {
		return nil
	}
	for _, pattern := range t.Effective(tick).AllowedSyscalls {
		if port, ok := schema.LocalhostPort(pattern); ok {
			ports = append(ports, port)
		}
	}
	return ports
}

// Hosts are the patterns of the hosts that the holder may connect to at tick.
func (t *Token) Hosts(tick int64) []string {
	if sum := sumHTTP(t.Fetch(tick)); sum != nil {
		return sum.Hosts
	}
	return nil
}
