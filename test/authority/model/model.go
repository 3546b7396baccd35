// Package model computes the outcome of calls that CAP requires (PROTOCOL 5, 6). It models the tree of
// processes, and the capabilities, quotas and mail of each process, independently of the kernel's implementation.
package model

import "slices"

// Model is the state of a kernel, as the rules define it.
type Model struct {
	Pools    map[string]Tenths // capacity by name
	Capacity int               // capacity of a mailbox
	Tick     int64
	Procs    []*Proc           // the process with PID n is at n-1
	Box      *Box              // the operator's mailbox
	Messages int64             // number of messages sent
	Memory   map[string]string // values that Memory.Set has set, by key
	deltas   map[string]int64  // number of commits by agent
	loans    []*loan           // oldest first
}

// Proc is a process. Exit is nil while it is alive.
type Proc struct {
	PID, Parent int64
	Agent       string
	Birth       int64
	Exit        *int64
	Quota       map[string]Tenths // quota of its spawn
	Token       Token             // nil: it has none
	Box         *Box              // nil: the mailbox is closed
}

// loan is an allocation. against are the granters whose quota it also counts towards.
type loan struct {
	pid      int64
	resource string
	amount   Tenths
	against  []int64
}

// New returns the model of a kernel without processes.
func New(pools map[string]Tenths, capacity int) *Model {
	return &Model{Pools: pools, Capacity: capacity, Box: new(Box), Memory: map[string]string{}, deltas: map[string]int64{}}
}

// Operator is the PID of the operator, who may make every call.
const Operator int64 = 0

// Proc returns the process with this PID; nil if there is none.
func (m *Model) Proc(pid int64) *Proc {
	if pid < 1 || pid > int64(len(m.Procs)) {
		return nil
	}
	return m.Procs[pid-1]
}

// Token returns the token of pid; nil if it has none.
func (m *Model) Token(pid int64) Token {
	if p := m.Proc(pid); p != nil {
		return p.Token
	}
	return nil
}

// Below reports whether pid is a descendant of ancestor.
func (m *Model) Below(pid, ancestor int64) bool {
	for p := m.Proc(pid); p != nil; p = m.Proc(p.Parent) {
		if p.Parent == ancestor {
			return true
		}
	}
	return false
}

// May reports whether pid may call a syscall now (CAP 2: existence, expiry, permission).
func (m *Model) May(pid int64, typ string) bool {
	if pid == Operator {
		return true
	}
	return m.Token(pid) != nil && slices.ContainsFunc(m.Token(pid), func(g *Grant) bool {
		return !g.Expired(m.Tick) && g.Names(typ) && m.May(g.By, typ) // a grant counts only while its granter may make the call
	})
}

// Quota returns the effective quota of pid: its grant's, limited to that of the granter.
func (m *Model) Quota(pid int64, resource string) Tenths {
	g := m.Token(pid).of(resource)
	switch {
	case g == nil || g.Expired(m.Tick):
		return 0
	case g.By == Operator:
		return g.Quotas[resource]
	}
	return min(g.Quotas[resource], m.Quota(g.By, resource))
}

// Last returns the last tick at which any grant of a token is valid; nil if it does not expire.
func (m *Model) Last(pid int64) (last *int64) {
	for i, g := range m.Token(pid) {
		until := g.Expires
		if g.By != Operator && m.Token(g.By) != nil {
			if above := m.Last(g.By); until == nil || (above != nil && *above < *until) {
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

// within reports whether a grant exceeds its granter in no syscall, quota or expiry (PROTOCOL 5).
func (m *Model) within(g *Grant, granter int64) bool {
	for _, typ := range Types {
		if g.Names(typ) && !m.May(granter, typ) {
			return false
		}
	}
	for resource, amount := range g.Quotas {
		if amount > m.Quota(granter, resource) {
			return false
		}
	}
	last := m.Last(granter)
	return last == nil || (g.Expires != nil && *g.Expires <= *last)
}

// cut returns the part of the default grant that a granter may grant. A child that is spawned without a grant gets it.
func (m *Model) cut(g *Grant, granter int64) *Grant {
	c := &Grant{Quotas: map[string]Tenths{}, Expires: m.Last(granter)}
	for _, name := range g.Allowed {
		if slices.ContainsFunc(Types, func(typ string) bool { return (typ == name || codes[typ] == name) && m.May(granter, typ) }) {
			c.Allowed = append(c.Allowed, name)
		}
	}
	for resource, amount := range g.Quotas {
		if most := min(amount, m.Quota(granter, resource)); most > 0 {
			c.Quotas[resource] = most
		}
	}
	return c
}

// Held returns the amount of a resource that pid holds.
func (m *Model) Held(pid int64, resource string) (sum Tenths) {
	for _, l := range m.loans {
		if l.pid == pid && l.resource == resource {
			sum += l.amount
		}
	}
	return sum
}

// Used returns the amount that counts towards the quota of pid.
func (m *Model) Used(pid int64, resource string) (sum Tenths) {
	for _, l := range m.loans {
		if l.resource == resource && (l.pid == pid || slices.Contains(l.against, pid)) {
			sum += l.amount
		}
	}
	return sum
}

// repay releases an amount, from the latest loans first.
func (m *Model) repay(pid int64, resource string, amount Tenths) {
	for _, l := range slices.Backward(m.loans) {
		if l.pid == pid && l.resource == resource {
			part := min(amount, l.amount)
			l.amount -= part
			amount -= part
		}
	}
	m.loans = slices.DeleteFunc(m.loans, func(l *loan) bool { return l.amount == 0 })
}

// Total returns the allocated amount of a pool.
func (m *Model) Total(resource string) (sum Tenths) {
	for _, l := range m.loans {
		if l.resource == resource {
			sum += l.amount
		}
	}
	return sum
}

// subtree returns pid and its descendants, without those that have ended.
func (m *Model) subtree(pid int64) (pids []int64) {
	for _, p := range m.Procs {
		if p.Exit == nil && (p.PID == pid || m.Below(p.PID, pid)) {
			pids = append(pids, p.PID)
		}
	}
	return pids
}

// Exit ends processes and their descendants. Strip, Free and Close then remove what they leave, as the kernel's steps do (PROTOCOL 6).
func (m *Model) Exit(pids ...int64) {
	at := m.Tick
	for _, root := range pids {
		for _, pid := range m.subtree(root) {
			m.Proc(pid).Exit = &at
		}
	}
}

// Strip removes the tokens of processes.
func (m *Model) Strip(pids ...int64) {
	m.each(pids, func(p *Proc) { p.Token = nil })
}

// Free releases the allocations of processes.
func (m *Model) Free(pids ...int64) {
	m.loans = slices.DeleteFunc(m.loans, func(l *loan) bool { return slices.Contains(pids, l.pid) })
}

// Close removes the mailboxes of processes.
func (m *Model) Close(pids ...int64) {
	m.each(pids, func(p *Proc) { p.Box = nil })
}

func (m *Model) each(pids []int64, do func(*Proc)) {
	for _, pid := range pids {
		if p := m.Proc(pid); p != nil {
			do(p)
		}
	}
}
