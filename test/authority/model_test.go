package authority_test

import "slices"

// model is the kernel as plainly as PROTOCOL 5 and 6 and CAP can be said: who is whose child, who may do what, who holds
// how much. It knows nothing of how the kernel does it.
type model struct {
	pools    map[string]tenths // capacity by name
	mailbox  int               // messages a mailbox holds
	tick     int64
	procs    []*proc           // the process with PID n at n-1
	loans    []*loan           // the oldest first
	mail     int               // messages in the operator's mailbox
	messages int64             // numbered so far
	memory   map[string]string // value by key
	deltas   map[string]int64  // committed so far, by agent
	keys     map[keyOf]first
}

// proc is a process; it stays known when it has ended.
type proc struct {
	pid, parent int64
	agent       string
	birth       int64
	exit        *int64
	quota       map[string]tenths // when it was spawned
	token       token             // nil: none
	mail        int               // messages in its mailbox
}

// loan is what an allocation took of a pool, and whose quota it counts against beside the holder's.
type loan struct {
	pid      int64
	resource string
	amount   tenths
	against  []int64
}

// keyOf is an idempotency key of a caller; first is what came of its first use.
type keyOf struct {
	pid int64
	key string
}

type first struct {
	body   string
	answer answer
}

func newModel(pools map[string]tenths, mailbox int) *model {
	return &model{
		pools: pools, mailbox: mailbox,
		memory: map[string]string{}, deltas: map[string]int64{}, keys: map[keyOf]first{},
	}
}

const operator = 0

// proc is the process with this PID, nil where there never was one.
func (m *model) proc(pid int64) *proc {
	if pid < 1 || pid > int64(len(m.procs)) {
		return nil
	}
	return m.procs[pid-1]
}

func (m *model) token(pid int64) token {
	if p := m.proc(pid); p != nil {
		return p.token
	}
	return nil
}

// below reports whether pid is a child of ancestor, a child's child, and so on.
func (m *model) below(pid, ancestor int64) bool {
	for p := m.proc(pid); p != nil; p = m.proc(p.parent) {
		if p.parent == ancestor {
			return true
		}
	}
	return false
}

// may reports whether pid may call a syscall now (CAP 2: existence, expiry, permission).
func (m *model) may(pid int64, typ string) bool {
	if pid == operator {
		return true
	}
	return m.token(pid) != nil && slices.ContainsFunc(m.token(pid), func(g *grant) bool {
		return !g.expired(m.tick) && g.names(typ) && m.may(g.by, typ) // what was granted holds as long as the granter may do it
	})
}

// quota is how much pid may hold of a resource, at most as much as its granter.
func (m *model) quota(pid int64, resource string) tenths {
	g := m.token(pid).of(resource)
	switch {
	case g == nil || g.expired(m.tick):
		return 0
	case g.by == operator:
		return g.quotas[resource]
	}
	return min(g.quotas[resource], m.quota(g.by, resource))
}

// last is the last tick at which anything of a token holds, nil where it does not expire.
func (m *model) last(pid int64) (last *int64) {
	for i, g := range m.token(pid) {
		until := g.expires
		if g.by != operator && m.token(g.by) != nil {
			if above := m.last(g.by); until == nil || (above != nil && *above < *until) {
				until = above
			}
		}
		if until == nil {
			return nil
		}
		if i == 0 || *until > *last {
			last = until
		}
	}
	return last
}

// within reports whether a grant holds no more than its granter may do: no syscall, no quota, no tick (PROTOCOL 5).
func (m *model) within(g *grant, granter int64) bool {
	for _, typ := range types {
		if g.names(typ) && !m.may(granter, typ) {
			return false
		}
	}
	for resource, amount := range g.quotas {
		if amount > m.quota(granter, resource) {
			return false
		}
	}
	last := m.last(granter)
	return last == nil || (g.expires != nil && *g.expires <= *last)
}

// cut is the default grant as far as a granter may do it: what a child gets of whom nobody said what it gets.
func (m *model) cut(g *grant, granter int64) *grant {
	c := &grant{quotas: map[string]tenths{}, expires: m.last(granter)}
	for _, name := range g.allowed {
		if slices.ContainsFunc(types, func(typ string) bool { return (typ == name || codes[typ] == name) && m.may(granter, typ) }) {
			c.allowed = append(c.allowed, name)
		}
	}
	for resource, amount := range g.quotas {
		if most := min(amount, m.quota(granter, resource)); most > 0 {
			c.quotas[resource] = most
		}
	}
	return c
}

// held is what pid holds of a resource, used what counts against its quota.
func (m *model) held(pid int64, resource string) (sum tenths) {
	for _, l := range m.loans {
		if l.pid == pid && l.resource == resource {
			sum += l.amount
		}
	}
	return sum
}

func (m *model) used(pid int64, resource string) (sum tenths) {
	for _, l := range m.loans {
		if l.resource == resource && (l.pid == pid || slices.Contains(l.against, pid)) {
			sum += l.amount
		}
	}
	return sum
}

// repay gives amount back, of the latest loans first.
func (m *model) repay(pid int64, resource string, amount tenths) {
	for _, l := range slices.Backward(m.loans) {
		if l.pid == pid && l.resource == resource {
			part := min(amount, l.amount)
			l.amount -= part
			amount -= part
		}
	}
	m.loans = slices.DeleteFunc(m.loans, func(l *loan) bool { return l.amount == 0 })
}

// total is what is held of a pool in all.
func (m *model) total(resource string) (sum tenths) {
	for _, l := range m.loans {
		if l.resource == resource {
			sum += l.amount
		}
	}
	return sum
}

// subtree is the living among pid and those below it.
func (m *model) subtree(pid int64) []*proc {
	return slices.DeleteFunc(slices.Clone(m.procs), func(p *proc) bool {
		return p.exit != nil || (p.pid != pid && !m.below(p.pid, pid))
	})
}

// end ends a process and all below it: their tokens, what they hold and their mailboxes go (PROTOCOL 6).
func (m *model) end(pid int64) {
	at := m.tick
	for _, p := range m.subtree(pid) {
		p.exit, p.token, p.mail = &at, nil, 0
		m.loans = slices.DeleteFunc(m.loans, func(l *loan) bool { return l.pid == p.pid })
	}
}
