package authority_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// tenths are amounts as the model keeps them: whole tenths of a unit, so that its sums are exact.
type tenths int64

// String writes an amount as people do, and as JSON takes it.
func (a tenths) String() string {
	if a%10 == 0 {
		return fmt.Sprint(int64(a / 10))
	}
	return fmt.Sprintf("%d.%d", a/10, a%10)
}

func (a tenths) units() float64 { return float64(a) / 10 }

// grant is what one granter allows as the model has it (CAP 2): what may be called, how much may be held, until when.
type grant struct {
	by      int64
	allowed []string
	quotas  map[string]tenths
	expires *int64 // the last tick at which it holds; nil: it does not end
}

// codes are the syscalls that CAP 1 gives a code to, by their types in PROTOCOL 5.
var codes = map[string]string{
	"Syscall.Alloc": "SYS_ALLOC", "Syscall.Release": "SYS_RELEASE", "Syscall.Query": "SYS_QUERY",
	"Syscall.Spawn": "SYS_SPAWN", "Syscall.Terminate": "SYS_TERMINATE", "Syscall.CommitDelta": "SYS_COMMIT_DELTA",
	"Syscall.Rollback": "SYS_ROLLBACK", "Syscall.SendMsg": "SYS_SEND_MSG", "Syscall.Checkpoint": "SYS_CHECKPOINT",
	"Syscall.GetState": "SYS_GET_STATE",
}

// types are what a token can allow: the rows of PROTOCOL 5 that need one, and Syscall.Shutdown, which no token is enough
// for but which a pattern stands for all the same.
var types = []string{
	"Syscall.Alloc", "Syscall.Release", "Syscall.Query", "Syscall.Spawn", "Syscall.Terminate", "Syscall.CommitDelta",
	"Syscall.Rollback", "Syscall.SendMsg", "Syscall.Checkpoint", "Syscall.GetState", "Syscall.Shutdown",
	"Memory.Get", "Memory.Set", "Memory.Delete", "Memory.List",
	"Capability.Grant", "Capability.GrantDefault", "Capability.Revoke", "Capability.RevokeExpired", "Capability.Check", "Capability.Get",
	"Process.List", "Process.Get", "Ipc.Receive", "Ipc.Broadcast", "Audit.Log", "Audit.Metrics", "Audit.Verify", "Clock.Get", "Clock.Advance",
}

// defaultQuota is what CAP 3 gives of each resource.
const defaultQuota = 200 * 10

// defaultGrant is the grant of CAP 3.
func defaultGrant(resources []string) *grant {
	g := &grant{allowed: []string{"Ipc.Receive"}, quotas: map[string]tenths{}}
	for _, code := range codes {
		g.allowed = append(g.allowed, code)
	}
	slices.Sort(g.allowed)
	for _, r := range resources {
		g.quotas[r] = defaultQuota
	}
	return g
}

// names reports whether the grant names a syscall, by type, code, domain or *.
func (g *grant) names(typ string) bool {
	domain, _, _ := strings.Cut(typ, ".")
	return slices.ContainsFunc(g.allowed, func(p string) bool {
		return p == "*" || p == domain+".*" || p == typ || (p == codes[typ] && p != "")
	})
}

// expired reports whether the grant holds no longer at tick (CAP 2).
func (g *grant) expired(tick int64) bool { return g.expires != nil && tick > *g.expires }

// canonical is the grant as a token shows it: what is allowed sorted and named once.
func (g *grant) canonical() *grant {
	c := *g
	c.allowed = slices.Compact(slices.Sorted(slices.Values(g.allowed)))
	return &c
}

// with is the grant with another of the same granter added at a tick (PROTOCOL 5).
func (g *grant) with(more *grant, tick int64) *grant {
	if g == nil || (g.expired(tick) && more.expires == nil) {
		return more
	}
	sum := &grant{by: more.by, allowed: slices.Concat(g.allowed, more.allowed), quotas: map[string]tenths{}, expires: more.expires}
	maps.Copy(sum.quotas, g.quotas)
	maps.Copy(sum.quotas, more.quotas)
	if more.expires == nil {
		sum.expires = g.expires
	}
	return sum.canonical()
}

// token is what a process was granted: by the operator, by an agent, or by both, in this order.
type token []*grant

// by is the grant of one granter, nil where there is none.
func (t token) by(granter int64) *grant {
	for _, g := range t {
		if g.by == granter {
			return g
		}
	}
	return nil
}

// agent is the agent that granted, the operator where none did.
func (t token) agent() int64 { return t[len(t)-1].by }

// of is the grant that names a resource, nil where none does.
func (t token) of(resource string) *grant {
	for _, g := range t {
		if _, ok := g.quotas[resource]; ok {
			return g
		}
	}
	return nil
}

func (t token) expired(tick int64) bool {
	return !slices.ContainsFunc(t, func(g *grant) bool { return !g.expired(tick) })
}

// sum is the token as one grant, to be shown.
func (t token) sum() *grant {
	sum := &grant{by: t.agent(), quotas: map[string]tenths{}}
	never := false
	for _, g := range t {
		sum.allowed = append(sum.allowed, g.allowed...)
		maps.Copy(sum.quotas, g.quotas)
		if never = never || g.expires == nil; !never && (sum.expires == nil || *sum.expires < *g.expires) {
			sum.expires = g.expires
		}
	}
	if never {
		sum.expires = nil
	}
	return sum.canonical()
}

// shown is a token as it is answered.
func (t token) shown(pid int64) string {
	text := fmt.Sprintf(`{"pid":%d,%s`, pid, t.sum().shown())
	for i, g := range t {
		if len(t) > 1 {
			text += []string{`,"grants":[`, `,`}[min(i, 1)] + "{" + g.shown() + "}"
		}
	}
	if len(t) > 1 {
		text += "]"
	}
	return text
}

// shown is a grant as it is answered.
func (g *grant) shown() string {
	text := fmt.Sprintf(`"granted_by":%d,%s`, g.by, g.canonical().members())
	if g.expires == nil {
		text += `,"expires_at_tick":null`
	}
	return text
}
