package authority_test

import (
	"fmt"
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

// grant is a capability token as the model has it (CAP 2): what may be called, how much may be held, until when.
type grant struct {
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
	g := &grant{quotas: map[string]tenths{}}
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

// within reports whether g holds no more than other does: no syscall, no quota, no tick (PROTOCOL 5).
func (g *grant) within(other *grant) bool {
	for _, typ := range types {
		if g.names(typ) && !other.names(typ) {
			return false
		}
	}
	for resource, amount := range g.quotas {
		if amount > other.quotas[resource] {
			return false
		}
	}
	return other.expires == nil || (g.expires != nil && *g.expires <= *other.expires)
}

// cut is the part of g that other holds too: what a child gets of whom nobody said what it gets.
func (g *grant) cut(other *grant) *grant {
	c := &grant{quotas: map[string]tenths{}, expires: other.expires}
	for _, code := range g.allowed {
		for typ, is := range codes {
			if is == code && other.names(typ) {
				c.allowed = append(c.allowed, code)
			}
		}
	}
	for resource, amount := range g.quotas {
		if most := min(amount, other.quotas[resource]); most > 0 {
			c.quotas[resource] = most
		}
	}
	return c
}

// canonical is the grant as a token shows it: what is allowed sorted and named once.
func (g *grant) canonical() *grant {
	c := *g
	c.allowed = slices.Compact(slices.Sorted(slices.Values(g.allowed)))
	return &c
}
