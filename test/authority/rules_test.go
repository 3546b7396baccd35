package authority_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The commands of a sequence.
const (
	opSpawn = iota
	opGrant
	opGrantDefault
	opRevoke
	opRevokeExpired
	opTerminate
	opAlloc
	opRelease
	opSendMsg
	opSet
	opCommitDelta
	opAdvance
	opCheck
	opAgain
	ops
)

// plan says what a step asks for and what must come of it.
func (m *model) plan(s *step) *plan {
	switch s.op {
	case opSpawn:
		return m.spawn(s)
	case opGrant:
		p, _ := m.caller(s, "Capability.Grant", false)
		return m.grant(p, m.someone(s.on), m.resolve(s.offer, p.who), "")
	case opGrantDefault:
		p, _ := m.caller(s, "Capability.GrantDefault", false)
		p.data = fmt.Sprintf(`{"pid":%d}`, m.someone(s.on))
		return m.grant(p, m.someone(s.on), defaultGrant(slices.Collect(maps.Keys(m.pools))), p.data)
	case opRevoke:
		return m.revoke(s)
	case opRevokeExpired:
		return m.revokeExpired(s)
	case opTerminate:
		return m.terminate(s)
	case opAlloc:
		return m.alloc(s)
	case opRelease:
		return m.release(s)
	case opSendMsg:
		return m.send(s)
	case opSet:
		p, members := m.caller(s, "Memory.Set", true)
		key, value := fmt.Sprintf("k%d", s.on%3), fmt.Sprint(int64(s.amount))
		p.data = fmt.Sprintf(`{"key":%q,"value":%s%s}`, key, value, members)
		p.want, p.apply = `{"success":true}`, func() { m.memory[key] = value }
		return p
	case opCommitDelta:
		return m.commit(s)
	case opAdvance:
		p, _ := m.caller(s, "Clock.Advance", false)
		p.data, p.want = fmt.Sprintf(`{"ticks":%d}`, s.ticks), fmt.Sprintf(`{"tick":%d}`, m.tick+s.ticks)
		p.apply = func() { m.tick += s.ticks }
		return p
	case opCheck:
		return m.check(s)
	}
	panic("no such command")
}

func (m *model) spawn(s *step) *plan {
	p, members := m.caller(s, "Syscall.Spawn", true)
	agent := agents[s.on%len(agents)]
	own := m.token(p.who)
	g := defaultGrant(slices.Collect(maps.Keys(m.pools)))
	switch {
	case !s.offer.none:
		g = m.resolve(s.offer, p.who)
		members += `,"capabilities":{` + g.members() + `}`
		m.granting(p, g)
	case p.who != operator && own != nil:
		g = g.cut(own)
	}
	pid := int64(len(m.procs)) + 1
	p.data = fmt.Sprintf(`{"child_agent_id":%q%s}`, agent, members)
	p.want = fmt.Sprintf(`{"child_pid":%d,"child_agent_id":%q}`, pid, agent)
	p.apply = func() {
		m.procs = append(m.procs, &proc{pid: pid, parent: p.who, agent: agent, birth: m.tick, quota: g.quotas, token: g.canonical()})
	}
	return p
}

// grant plans both commands that replace a token. An agent grants to those below it.
func (m *model) grant(p *plan, pid int64, g *grant, data string) *plan {
	target := m.proc(pid)
	p.deny(target == nil, 404)
	p.deny(target != nil && target.exit != nil, 409)
	p.deny(p.who != operator && !m.below(pid, p.who), 403)
	m.granting(p, g)
	if p.data = data; data == "" {
		p.data = fmt.Sprintf(`{"pid":%d,%s}`, pid, g.members())
	}
	p.want = fmt.Sprintf(`{"pid":%d,%s}`, pid, g.canonical().members())
	p.apply = func() { target.token = g.canonical() }
	return p
}

func (m *model) revoke(s *step) *plan {
	p, _ := m.caller(s, "Capability.Revoke", false)
	pid := m.someone(s.on)
	target := m.proc(pid)
	p.deny(target == nil, 404)
	p.deny(p.who != operator && !m.below(pid, p.who), 403)
	p.data = fmt.Sprintf(`{"pid":%d}`, pid)
	p.want = fmt.Sprintf(`{"pid":%d,"revoked":%v}`, pid, m.token(pid) != nil)
	p.apply = func() { target.token = nil }
	return p
}

func (m *model) revokeExpired(s *step) *plan {
	p, _ := m.caller(s, "Capability.RevokeExpired", false)
	var gone []*proc
	var pids []string
	for _, q := range m.procs {
		if q.token != nil && q.token.expired(m.tick) {
			gone, pids = append(gone, q), append(pids, fmt.Sprint(q.pid))
		}
	}
	p.data, p.want = `{}`, `{"revoked":[`+strings.Join(pids, ",")+`]}`
	p.apply = func() {
		for _, q := range gone {
			q.token = nil
		}
	}
	return p
}

// terminate: a process ends itself and those below it, the operator anybody; twice is fine.
func (m *model) terminate(s *step) *plan {
	p, members := m.caller(s, "Syscall.Terminate", true)
	pid := m.someone(s.on)
	p.deny(m.proc(pid) == nil, 404)
	p.deny(p.who != operator && p.who != pid && !m.below(pid, p.who), 403)
	p.data = fmt.Sprintf(`{"target_pid":%d%s}`, pid, members)
	p.want = fmt.Sprintf(`{"target_pid":%d}`, pid)
	p.apply = func() { m.end(pid) }
	return p
}

// room are the rules of holding more: within the quota, which the operator has none of, and within the pool.
func (m *model) room(pid int64, resource string, amount tenths) (faults []int) {
	capacity, ok := m.pools[resource]
	if !ok {
		return []int{404}
	}
	if pid != operator && (m.token(pid) == nil || m.held[pid][resource]+amount > m.token(pid).quotas[resource]) {
		faults = append(faults, 429)
	}
	if m.total(resource)+amount > capacity {
		faults = append(faults, 507)
	}
	return faults
}

func (m *model) alloc(s *step) *plan {
	p, members := m.caller(s, "Syscall.Alloc", true)
	resource := poolNames[s.pool]
	p.refused = m.room(p.who, resource, s.amount)
	p.data = fmt.Sprintf(`{"resource_id":%q,"amount":%s%s}`, resource, s.amount, members)
	p.want = fmt.Sprintf(`{"resource_id":%q,"amount":%s,"reserved":%s}`, resource, s.amount, m.held[p.who][resource]+s.amount)
	p.apply = func() { m.hold(p.who, resource, s.amount) }
	return p
}

func (m *model) release(s *step) *plan {
	p, members := m.caller(s, "Syscall.Release", true)
	resource := poolNames[s.pool]
	_, ok := m.pools[resource]
	p.deny(!ok, 404)
	p.deny(ok && s.amount > m.held[p.who][resource], 409)
	p.data = fmt.Sprintf(`{"resource_id":%q,"amount":%s%s}`, resource, s.amount, members)
	p.want = fmt.Sprintf(`{"resource_id":%q,"amount":%s}`, resource, s.amount)
	p.apply = func() { m.hold(p.who, resource, -s.amount) }
	return p
}

// send: to one process, or as 0 to all others that live; a full mailbox is an error where nobody gets the message.
func (m *model) send(s *step) *plan {
	p, members := m.caller(s, "Syscall.SendMsg", true)
	pid := int64(s.on % (len(m.procs) + 2))
	var there, get []*proc
	for _, q := range m.procs {
		if q.exit == nil && (q.pid == pid || (pid == 0 && q.pid != p.who)) {
			if there = append(there, q); q.mail < m.mailbox {
				get = append(get, q)
			}
		}
	}
	p.deny(len(there) == 0, 404)
	p.deny(len(there) > 0 && len(get) == 0, 429)
	p.data = fmt.Sprintf(`{"receiver_pid":%d,"payload":%s%s}`, pid, s.amount, members)
	p.want = fmt.Sprintf(`{"receiver_pid":%d,"status":"DELIVERED","msg_id":%d}`, pid, m.messages+1)
	p.apply = func() {
		m.messages++
		for _, q := range get {
			q.mail++
		}
	}
	return p
}

// commit: an agent's own memory alone, the operator any that it names.
func (m *model) commit(s *step) *plan {
	p, members := m.caller(s, "Syscall.CommitDelta", true)
	agent := agents[s.on%len(agents)]
	if s.amount > 2 {
		members += fmt.Sprintf(`,"agent_id":%q`, agent)
		p.deny(p.who != operator && m.proc(p.who).agent != agent, 403)
	} else if p.who == operator {
		p.deny(true, 422)
	} else {
		agent = m.proc(p.who).agent
	}
	p.data = fmt.Sprintf(`{"changes":{"n":%s}%s}`, s.amount, members)
	p.want = fmt.Sprintf(`{"agent_id":%q,"delta_seq":%d}`, agent, m.deltas[agent]+1)
	p.apply = func() { m.deltas[agent]++ }
	return p
}

// check: whether a call would be allowed, asked by itself or by those above.
func (m *model) check(s *step) *plan {
	p, _ := m.caller(s, "Capability.Check", false)
	pid := int64(s.on % (len(m.procs) + 2))
	p.key = "" // a query has none
	p.deny(p.who != operator && p.who != pid && !m.below(pid, p.who), 403)
	typ, more, allowed := "Memory.Set", "", m.may(pid, "Memory.Set")
	if resource := poolNames[s.pool]; s.amount > 0 {
		typ, more = "SYS_ALLOC", fmt.Sprintf(`,"resource_id":%q,"amount":%s`, resource, s.amount)
		allowed = m.may(pid, "Syscall.Alloc") && len(m.room(pid, resource, s.amount)) == 0
	}
	p.data = fmt.Sprintf(`{"pid":%d,"syscall":%q%s}`, pid, typ, more)
	p.want, p.open = fmt.Sprintf(`{"allowed":%v`, allowed), true
	p.apply = func() {}
	return p
}
