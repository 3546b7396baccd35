package kernel

import (
	"maps"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// Token is a capability token (CAP 2). It is immutable: a grant replaces it, nobody changes it.
type Token struct {
	schema.Token
}

// Expired reports whether the token holds no longer at tick (CAP 2: tick > expires_at_tick).
func (t *Token) Expired(tick int64) bool {
	return t.ExpiresAtTick != nil && tick > *t.ExpiresAtTick
}

// Allows reports whether the token names the syscall: by type, by code, by domain or by *. A syscall that is granted by
// name alone is not meant by the last two.
func (t *Token) Allows(row *schema.Syscall) bool {
	for _, pattern := range t.AllowedSyscalls {
		if matches(pattern, row) {
			return true
		}
	}
	return false
}

func matches(pattern string, row *schema.Syscall) bool {
	switch {
	case pattern == row.Type:
		return true
	case pattern == everything:
		return row.Grant != schema.ByName
	case wild(pattern):
		return row.Grant != schema.ByName && strings.HasPrefix(row.Type, pattern[:len(pattern)-1])
	}
	return pattern == row.Code && row.Code != ""
}

// everything is the pattern of all syscalls but the operator's own and those that are granted by name.
const everything = "*"

// wild reports whether the pattern stands for a whole domain of names, such as Memory.*
func wild(pattern string) bool { return strings.HasSuffix(pattern, ".*") }

// Quota returns how many units of a resource the holder may hold at once; none where the token does not name it.
func (t *Token) Quota(resource string) float64 { return t.ResourceQuotas[resource] }

// Covers returns an error that names the first thing that other has and t has not: a grant may hold no more than the
// granter (PROTOCOL 5).
func (t *Token) Covers(other *Token) *schema.Error {
	for _, pattern := range other.AllowedSyscalls {
		if !t.covers(pattern) {
			return schema.Errorf(schema.Forbidden, "pid %d may not grant %s: it does not hold it itself", t.PID, pattern)
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(other.ResourceQuotas)) {
		if amount := other.ResourceQuotas[resource]; amount > t.Quota(resource) {
			return schema.Errorf(schema.Forbidden, "pid %d may not grant a quota of %s of %s: its own is %s",
				t.PID, units(amount), resource, units(t.Quota(resource)))
		}
	}
	if t.ExpiresAtTick != nil && (other.ExpiresAtTick == nil || *other.ExpiresAtTick > *t.ExpiresAtTick) {
		return schema.Errorf(schema.Forbidden, "pid %d may not grant beyond tick %d, the last of its own token: set expires_at_tick to that or less",
			t.PID, *t.ExpiresAtTick)
	}
	return t.coversHTTP(other.HTTP)
}

// covers reports whether t holds all that the pattern stands for, whatever syscalls a later kernel adds: a pattern of a
// whole domain is covered by the same or by *, not by naming all that the domain has today. A syscall that is granted by
// name is covered by its name alone: else who may not call it could have a child that may.
func (t *Token) covers(pattern string) bool {
	if name, ok := upstreamPattern(pattern); ok {
		return t.namesUpstream(name)
	}
	row, known := Named(pattern)
	if known && row.Grant == schema.ByName {
		return t.Allows(row)
	}
	for _, own := range t.AllowedSyscalls {
		if own == everything || own == pattern {
			return true
		}
	}
	return known && (row.Grant == schema.Everyone || t.Allows(row))
}

// Named finds a syscall by its type or its code. The kernel's own commands are not found: nobody can call them.
func Named(pattern string) (*schema.Syscall, bool) {
	if row, ok := schema.Lookup(pattern); ok {
		return row, !row.Internal
	}
	rows := schema.Syscalls()
	i := slices.IndexFunc(rows, func(row schema.Syscall) bool { return row.Code == pattern && !row.Internal })
	if i < 0 || pattern == "" {
		return nil, false
	}
	return &rows[i], true
}
