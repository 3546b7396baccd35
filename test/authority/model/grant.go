package model

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Tenths are amounts in whole tenths of a unit, so that sums are exact.
type Tenths int64

// String returns the amount as a JSON number.
func (a Tenths) String() string {
	if a%10 == 0 {
		return fmt.Sprint(int64(a / 10))
	}
	return fmt.Sprintf("%d.%d", a/10, a%10)
}

// Units returns the amount as a number of units.
func (a Tenths) Units() float64 { return float64(a) / 10 }

// InTenths converts an amount of units, which has at most one decimal.
func InTenths(units float64) Tenths { return Tenths(math.Round(units * 10)) }

// Grant is the grant of one granter (CAP 2): what may be called, how much may be held, and until when.
type Grant struct {
	By      int64
	Allowed []string
	Quotas  map[string]Tenths
	Expires *int64 // the last tick at which it is valid; nil: no end
}

// codes are the codes of syscalls in CAP 1, by the types of PROTOCOL 5.
var codes = map[string]string{
	"Syscall.Alloc": "SYS_ALLOC", "Syscall.Release": "SYS_RELEASE", "Syscall.Query": "SYS_QUERY",
	"Syscall.Spawn": "SYS_SPAWN", "Syscall.Terminate": "SYS_TERMINATE", "Syscall.CommitDelta": "SYS_COMMIT_DELTA",
	"Syscall.Rollback": "SYS_ROLLBACK", "Syscall.SendMsg": "SYS_SEND_MSG", "Syscall.Checkpoint": "SYS_CHECKPOINT",
	"Syscall.GetState": "SYS_GET_STATE",
}

// Types are the types that a token can allow: the rows of PROTOCOL 5 that need a token, and Syscall.Shutdown, which a pattern
// includes although no token is sufficient for it.
var Types = []string{
	"Syscall.Alloc", "Syscall.Release", "Syscall.Query", "Syscall.Spawn", "Syscall.Terminate", "Syscall.CommitDelta",
	"Syscall.Rollback", "Syscall.SendMsg", "Syscall.Checkpoint", "Syscall.GetState", "Syscall.Shutdown",
	"Memory.Get", "Memory.Set", "Memory.CompareAndSet", "Memory.Delete", "Memory.List",
	"Capability.Grant", "Capability.GrantDefault", "Capability.Revoke", "Capability.RevokeExpired", "Capability.Check", "Capability.Get",
	"Process.List", "Process.Get", "Ipc.Receive", "Ipc.Subscribe", "Ipc.Ack", "Ipc.Broadcast",
	"Audit.Log", "Audit.Metrics", "Audit.Verify", "Audit.Subscribe", "Clock.Get", "Clock.Advance",
}

// DefaultQuota is the default of CAP 3 for each resource.
const DefaultQuota = 200 * 10

// DefaultGrant returns the grant of CAP 3.
func DefaultGrant(resources []string) *Grant {
	g := &Grant{Allowed: []string{"Ipc.Receive"}, Quotas: map[string]Tenths{}}
	for _, code := range codes {
		g.Allowed = append(g.Allowed, code)
	}
	slices.Sort(g.Allowed)
	for _, r := range resources {
		g.Quotas[r] = DefaultQuota
	}
	return g
}

// Names reports whether the grant includes a syscall, by its type, code or domain, or by *.
func (g *Grant) Names(typ string) bool {
	domain, _, _ := strings.Cut(typ, ".")
	return slices.ContainsFunc(g.Allowed, func(p string) bool {
		return p == "*" || p == domain+".*" || p == typ || (p == codes[typ] && p != "")
	})
}

// Expired reports whether the grant has expired at tick (CAP 2).
func (g *Grant) Expired(tick int64) bool { return g.Expires != nil && tick > *g.Expires }

// canonical returns the grant in the form of a token: the allowed syscalls are sorted and have no duplicates.
func (g *Grant) canonical() *Grant {
	c := *g
	c.Allowed = slices.Compact(slices.Sorted(slices.Values(g.Allowed)))
	return &c
}

// with returns the grant after the same granter has added another grant (PROTOCOL 5).
func (g *Grant) with(more *Grant) *Grant {
	if g == nil {
		return more
	}
	sum := &Grant{By: more.By, Allowed: slices.Concat(g.Allowed, more.Allowed), Quotas: map[string]Tenths{}, Expires: more.Expires}
	maps.Copy(sum.Quotas, g.Quotas)
	maps.Copy(sum.Quotas, more.Quotas)
	if more.Expires == nil {
		sum.Expires = g.Expires
	}
	return sum.canonical()
}

// Token has the grants of a process: the operator's, an agent's, or both in this order.
type Token []*Grant

// by returns the grant of a granter; nil if there is none.
func (t Token) by(granter int64) *Grant {
	for _, g := range t {
		if g.By == granter {
			return g
		}
	}
	return nil
}

// agent returns the agent that granted a part of the token, or else Operator.
func (t Token) agent() int64 { return t[len(t)-1].By }

// of returns the grant with a quota of a resource; nil if there is none.
func (t Token) of(resource string) *Grant {
	for _, g := range t {
		if _, ok := g.Quotas[resource]; ok {
			return g
		}
	}
	return nil
}

// Expired reports whether all grants of the token have expired at tick.
func (t Token) Expired(tick int64) bool {
	return !slices.ContainsFunc(t, func(g *Grant) bool { return !g.Expired(tick) })
}

// Sum returns the token's grants combined into one.
func (t Token) Sum() *Grant {
	sum := &Grant{By: t.agent(), Quotas: map[string]Tenths{}}
	never := false
	for _, g := range t {
		sum.Allowed = append(sum.Allowed, g.Allowed...)
		maps.Copy(sum.Quotas, g.Quotas)
		if never = never || g.Expires == nil; !never && (sum.Expires == nil || *sum.Expires < *g.Expires) {
			sum.Expires = g.Expires
		}
	}
	if never {
		sum.Expires = nil
	}
	return sum.canonical()
}

// Shown returns the token as the kernel's answers have it, without the closing brace.
func (t Token) Shown(pid int64) string {
	text := fmt.Sprintf(`{"pid":%d,%s`, pid, t.Sum().Shown())
	for i, g := range t {
		if len(t) > 1 {
			text += []string{`,"grants":[`, `,`}[min(i, 1)] + "{" + g.Shown() + "}"
		}
	}
	if len(t) > 1 {
		text += "]"
	}
	return text
}

// Shown returns the members of a grant in the kernel's answers.
func (g *Grant) Shown() string {
	text := fmt.Sprintf(`"granted_by":%d,%s`, g.By, g.canonical().Members())
	if g.Expires == nil {
		text += `,"expires_at_tick":null`
	}
	return text
}

// Members returns the members of a grant in the data of a call.
func (g *Grant) Members() string {
	var b strings.Builder
	b.WriteString(`"allowed_syscalls":[`)
	for i, pattern := range g.Allowed {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Quote(pattern))
	}
	b.WriteString(`],"resource_quotas":{`)
	for i, resource := range slices.Sorted(maps.Keys(g.Quotas)) {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", resource, g.Quotas[resource])
	}
	b.WriteByte('}')
	if g.Expires != nil {
		fmt.Fprintf(&b, `,"expires_at_tick":%d`, *g.Expires)
	}
	return b.String()
}
