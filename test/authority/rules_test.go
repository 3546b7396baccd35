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
		return m.grant(p, m.someone(s.on), m.resolve(s.offer, p.who), "", s.add)
	case opGrantDefault:
		p, _ := m.caller(s, "Capability.GrantDefault", false)
		p.data = fmt.Sprintf(`{"pid":%d}`, m.someone(s.on))
		return m.grant(p, m.someone(s.on), defaultGrant(slices.Collect(maps.Keys(m.pools))), p.data, false)
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
	name := agent
	if p.who != operator {
		name = m.proc(p.who).agent + "/" + agent
	}
	p.deny(slices.ContainsFunc(m.procs, func(q *proc) bool { return q.exit == nil && q.parent == p.who && q.agent == name }), 409)
	g := defaultGrant(slices.Collect(maps.Keys(m.pools)))
	switch {
	case !s.offer.none:
		g = m.resolve(s.offer, p.who)
		members += `,"capabilities":{` + g.members() + `}`
		m.granting(p, g)
	case p.who != operator:
		g = m.cut(g, p.who)
	}
	g.by = p.who
	pid := int64(len(m.procs)) + 1
	p.data = fmt.Sprintf(`{"child_agent_id":%q%s}`, agent, members)
	p.want = fmt.Sprintf(`{"child_pid":%d,"child_agent_id":%q}`, pid, name)
	p.apply = func() {
		m.procs = append(m.procs, &proc{pid: pid, parent: p.who, agent: name, birth: m.tick, quota: g.quotas, token: token{g.canonical()}})
	}
	return p
}

// grant plans both commands that replace a token, or add to one. An agent grants to those below it.
func (m *model) grant(p *plan, pid int64, g *grant, data string, add bool) *plan {
	target := m.proc(pid)
	p.deny(target == nil, 404)
	p.deny(target != nil && target.exit != nil, 409)
	p.deny(p.who != operator && !m.below(pid, p.who), 403)
	g.by = p.who
	made := token{g.canonical()}
	if p.data = data; data == "" {
		mode := ""
		if add {
			mode = `,"mode":"add"`
			made = m.added(p, pid, g)
		}
		p.data = fmt.Sprintf(`{"pid":%d,%s%s}`, pid, g.members(), mode)
	}
	checked := *g
	if own := made.by(p.who); own != nil {
		checked.expires = own.expires
	}
	m.granting(p, &checked)
	p.want = made.shown(pid)
	if target != nil && len(p.refused) == 0 {
		was := target.token
		target.token = made
		if !slices.ContainsFunc(types, func(typ string) bool { return m.may(pid, typ) }) && !m.holdsAny(pid) {
			p.want += `,"warning":"nothing of this grant is effective`
			p.open = true
		}
		target.token = was
	}
	if !p.open {
		p.want += "}"
	}
	p.apply = func() { target.token = made }
	return p
}

// holdsAny reports whether pid has a quota of anything, or was granted nothing at all, which nothing is missing of.
func (m *model) holdsAny(pid int64) bool {
	sum := m.token(pid).sum()
	for resource := range sum.quotas {
		if m.quota(pid, resource) > 0 {
			return true
		}
	}
	return len(sum.allowed) == 0 && len(sum.quotas) == 0
}

// added is the token of pid with a grant more. That of the same granter takes it in, else it stands beside: the operator's
// and one agent's.
func (m *model) added(p *plan, pid int64, g *grant) token {
	before, made := m.token(pid), token{}
	joined := before.by(g.by).with(g.canonical(), m.tick)
	for _, other := range before {
		if other.by == g.by {
			continue
		}
		if other.by != operator && g.by != operator {
			p.deny(true, 409)
			continue
		}
		kept, more := *other, *joined
		kept.quotas, more.quotas = maps.Clone(kept.quotas), maps.Clone(more.quotas)
		for resource, amount := range more.quotas { // each of them stands in one of the two
			switch had, both := kept.quotas[resource]; {
			case both && (g.by == operator || amount > had):
				delete(kept.quotas, resource)
			case both:
				delete(more.quotas, resource)
			}
		}
		made, joined = append(made, &kept), &more
	}
	made = append(made, joined)
	slices.SortFunc(made, func(a, b *grant) int { return int(a.by - b.by) })
	return made
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

// room are the rules of holding more: within the quota of who holds it and of each granter above, which the operator is not
// among, and within the pool.
func (m *model) room(pid int64, resource string, amount tenths) (against []int64, faults []int) {
	capacity, ok := m.pools[resource]
	if !ok {
		return nil, []int{404}
	}
	for of := pid; of != operator; {
		g := m.token(of).of(resource)
		quota := tenths(0)
		if g != nil && !g.expired(m.tick) {
			quota = g.quotas[resource]
		}
		if m.used(of, resource)+amount > quota {
			faults = append(faults, 429)
		}
		if g == nil {
			break
		}
		if of = g.by; of != operator {
			against = append(against, of)
		}
	}
	if m.total(resource)+amount > capacity {
		faults = append(faults, 507)
	}
	return against, faults
}

func (m *model) hasRoom(pid int64, resource string, amount tenths) bool {
	_, faults := m.room(pid, resource, amount)
	return len(faults) == 0
}

func (m *model) alloc(s *step) *plan {
	p, members := m.caller(s, "Syscall.Alloc", true)
	resource := poolNames[s.pool]
	against, faults := m.room(p.who, resource, s.amount)
	p.refused = faults
	p.data = fmt.Sprintf(`{"resource_id":%q,"amount":%s%s}`, resource, s.amount, members)
	p.want = fmt.Sprintf(`{"resource_id":%q,"amount":%s,"reserved":%s`, resource, s.amount, m.held(p.who, resource)+s.amount)
	if len(against) > 0 {
		p.want += `,"counted_against":` + strings.ReplaceAll(fmt.Sprint(against), " ", ",")
	}
	p.want += "}"
	p.apply = func() {
		if s.amount > 0 {
			m.loans = append(m.loans, &loan{p.who, resource, s.amount, against})
		}
	}
	return p
}

func (m *model) release(s *step) *plan {
	p, members := m.caller(s, "Syscall.Release", true)
	resource := poolNames[s.pool]
	_, ok := m.pools[resource]
	p.deny(!ok, 404)
	p.deny(ok && s.amount > m.held(p.who, resource), 409)
	p.data = fmt.Sprintf(`{"resource_id":%q,"amount":%s%s}`, resource, s.amount, members)
	p.want = fmt.Sprintf(`{"resource_id":%q,"amount":%s}`, resource, s.amount)
	p.apply = func() { m.repay(p.who, resource, s.amount) }
	return p
}

// send: to one process, or as 0 from the operator to all that live and from an agent to the operator; a full mailbox is an error
// where nobody gets the message.
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
	back := pid == 0 && p.who != operator
	if back {
		there, get = nil, nil
		p.deny(m.mail >= m.mailbox, 429)
	}
	p.deny(len(there) == 0 && !back, 404)
	p.deny(len(there) > 0 && len(get) == 0, 429)
	p.data = fmt.Sprintf(`{"receiver_pid":%d,"payload":%s%s}`, pid, s.amount, members)
	p.want = fmt.Sprintf(`{"receiver_pid":%d,"status":"DELIVERED","msg_id":%d}`, pid, m.messages+1)
	p.apply = func() {
		m.messages++
		for _, q := range get {
			q.mail++
		}
		if back {
			m.mail++
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
		allowed = m.may(pid, "Syscall.Alloc") && m.hasRoom(pid, resource, s.amount)
	}
	p.data = fmt.Sprintf(`{"pid":%d,"syscall":%q%s}`, pid, typ, more)
	p.want, p.open = fmt.Sprintf(`{"allowed":%v`, allowed), true
	p.apply = func() {}
	return p
}
