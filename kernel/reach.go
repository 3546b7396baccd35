package kernel

import (
	"maps"
	"slices"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Covers returns an error that names the first thing that a grant has and t may not do at tick: nobody grants more than it
// may do itself (PROTOCOL 5).
func (t *Token) Covers(g *schema.TokenGrant, tick int64) *fault.Fault {
	for _, pattern := range g.AllowedSyscalls {
		if row, ok := Named(pattern); ok && row.Grant == schema.Everyone {
			continue
		}
		if !t.AllowsNamed(pattern, tick) {
			return fault.CapabilityTooMuch.New("pid %d may not grant %s: it does not hold it itself", t.PID(), pattern)
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(g.ResourceQuotas)) {
		if amount, own := g.ResourceQuotas[resource], t.Quota(resource, tick); amount > own {
			return fault.CapabilityTooMuch.New("pid %d may not grant a quota of %s of %s: its own is %s",
				t.PID(), units(amount), resource, units(own))
		}
	}
	if last := t.Last(); last != nil && (g.ExpiresAtTick == nil || *g.ExpiresAtTick > *last) {
		return fault.CapabilityTooMuch.New("pid %d may not grant beyond tick %d, the last of its own token", t.PID(), *last).
			WithFix("set expires_at_tick to that or less")
	}
	return t.coversHTTP(g.HTTP, tick)
}

// Effective returns what is left of the token at tick.
func (t *Token) Effective(tick int64) schema.Effective {
	e := schema.Effective{AllowedSyscalls: []string{}, ResourceQuotas: map[string]float64{}, ExpiresAtTick: t.Last()}
	for i := range t.grants() {
		g := t.grant(i)
		switch {
		case expired(g, tick):
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

// Ineffective says why nothing of what a token grants is effective at tick, "" where something is.
func (t *Token) Ineffective(tick int64) string {
	e := t.Effective(tick)
	switch {
	case len(e.AllowedSyscalls) > 0 || len(e.ResourceQuotas) > 0 || e.HTTP != nil:
		return ""
	case len(t.Granted.AllowedSyscalls) == 0 && len(t.Granted.ResourceQuotas) == 0 && t.Granted.HTTP == nil:
		return "" // as was asked for
	case t.Expired(tick):
		return "it has expired already"
	}
	return "its granter may do nothing of it itself"
}
