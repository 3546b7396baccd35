package capability_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// model is the registry in its simplest form: the token of each PID.
type model map[int64]schema.Token

// exceeds says what the holder of other may do that the holder of own may not, by a check of every syscall.
func exceeds(own, other schema.Token) string {
	for _, row := range schema.Syscalls() {
		if row.Grant == schema.ByCapability && !row.Internal && names(other, row) && !names(own, row) {
			return row.Type
		}
	}
	for resource, amount := range other.ResourceQuotas {
		if amount > own.ResourceQuotas[resource] {
			return resource
		}
	}
	if own.ExpiresAtTick != nil && (other.ExpiresAtTick == nil || *other.ExpiresAtTick > *own.ExpiresAtTick) {
		return "expiry"
	}
	return ""
}

func names(t schema.Token, row *schema.Syscall) bool {
	domain, _, _ := strings.Cut(row.Type, ".")
	return slices.ContainsFunc(t.AllowedSyscalls, func(pattern string) bool {
		return pattern == "*" || pattern == domain+".*" || pattern == row.Type || (row.Code != "" && pattern == row.Code)
	})
}

// contains reports whether other has only patterns of own, in the same spelling: then it must be granted.
func contains(own, other schema.Token) bool {
	for _, pattern := range other.AllowedSyscalls {
		if !slices.Contains(own.AllowedSyscalls, pattern) {
			return false
		}
	}
	return exceeds(own, other) == ""
}

// below reports whether pid is in the subtree under ancestor.
func below(f family, pid, ancestor int64) bool {
	for pid != 0 {
		if pid = f[pid].ParentPID; pid == ancestor {
			return true
		}
	}
	return false
}

// expired removes the tokens that have expired, and returns the registry's expected answer.
func (m model) expired(tick int64) string {
	list := []string{}
	for _, pid := range slices.Sorted(maps.Keys(m)) {
		if last := m[pid].ExpiresAtTick; last != nil && *last < tick {
			list = append(list, fmt.Sprint(pid))
			delete(m, pid)
		}
	}
	return `{"revoked":[` + strings.Join(list, ",") + `]}`
}

// caller is the process, or the operator, with its token of the model.
func (m model) caller(pid, tick int64) caller {
	c := caller{pid: pid, tick: tick}
	if t, ok := m[pid]; ok && pid != kernel.Operator {
		c.token = &kernel.Token{Granted: t}
		if t.GrantedBy != kernel.Operator {
			c.token.Granter = m.caller(t.GrantedBy, tick).token
		}
	}
	return c
}

// canonical is a grant in the form that the registry must keep.
func canonical(t schema.Token) schema.Token {
	t.AllowedSyscalls = append([]string{}, slices.Compact(slices.Sorted(slices.Values(t.AllowedSyscalls)))...)
	if t.ResourceQuotas == nil {
		t.ResourceQuotas = map[string]float64{}
	}
	return t
}
