package authority_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// plan is a step as it is to be sent, and what the rules say of it.
type plan struct {
	op   int
	conn int64 // whose connection it takes
	who  int64 // the process that it is made as
	request

	// barred are the reasons why it may not be made at all, refused those why it cannot be done. Where there is more than
	// one, any may be told; where there is none, the call must succeed.
	barred, refused []int

	want  string // the reply's data; with open, its beginning
	open  bool
	apply func() // what it changes
}

// deny notes that a call fails with code where bad holds.
func (p *plan) deny(bad bool, code int) {
	if bad {
		p.refused = append(p.refused, code)
	}
}

// caller says who makes a step, with the members that name it and its tick, for the commands that take them. A tick from
// the operator moves the clock, whatever becomes of the call; an agent's must not lie ahead (PROTOCOL 6).
func (m *model) caller(s *step, typ string, takesTarget bool) (p *plan, members string) {
	p = &plan{op: s.op, who: int64(s.by % (len(m.procs) + 1)), request: request{typ: typ}}
	p.conn = p.who
	var names []string
	if takesTarget && p.who != operator {
		switch s.as {
		case byOperator:
			p.conn = operator
			names = append(names, fmt.Sprintf(`"pid":%d`, p.who))
		case underAnother:
			other := m.someone(s.on)
			names = append(names, fmt.Sprintf(`"pid":%d`, other))
			if other != p.who {
				p.barred = append(p.barred, 403)
			}
		}
	}
	if takesTarget && s.key == 0 && s.ticks > 0 {
		tick := max(0, m.tick+s.ticks-2)
		names = append(names, fmt.Sprintf(`"tick":%d`, tick))
		switch {
		case p.conn == operator:
			m.tick = max(m.tick, tick)
		case tick > m.tick:
			p.barred = append(p.barred, 422)
		}
	}
	if s.key > 0 && p.conn == p.who {
		p.key = "k" + strconv.Itoa(s.key)
	}
	switch who := m.proc(p.who); {
	case who != nil && who.exit != nil:
		p.barred = append(p.barred, 410)
	case !m.may(p.who, typ):
		p.barred = append(p.barred, 403)
	}
	for _, name := range names {
		members += "," + name
	}
	return p, members
}

// someone is a PID that most often exists: from 1 to one more than there are.
func (m *model) someone(n int) int64 { return int64(1 + n%(len(m.procs)+1)) }

// resolve says what an offer of who's comes to.
func (m *model) resolve(o offer, who int64) *grant {
	if o.like == drawn || m.token(who) == nil {
		g := &grant{allowed: o.allowed, quotas: o.quotas, expires: o.expires}
		if len(g.allowed) == 0 {
			g.allowed = []string{"*"}
		}
		return g
	}
	own := m.token(who).sum()
	g := &grant{allowed: own.allowed, quotas: maps.Clone(own.quotas), expires: own.expires}
	if o.like == less {
		g.allowed = own.allowed[:(len(own.allowed)+1)/2]
		for resource := range g.quotas {
			g.quotas[resource] /= 2
		}
		if g.expires == nil || (o.expires != nil && *o.expires < *g.expires) {
			g.expires = o.expires
		}
	}
	return g
}

// granting are the rules of handing on authority: of resources that exist, and no more than who holds itself.
func (m *model) granting(p *plan, g *grant) {
	for resource := range g.quotas {
		_, ok := m.pools[resource]
		p.deny(!ok, 422)
	}
	p.deny(p.who != operator && !m.within(g, p.who), 403)
}

// members writes a grant as JSON members; from the text of a token it differs in nothing but its PID.
func (g *grant) members() string {
	var b strings.Builder
	b.WriteString(`"allowed_syscalls":[`)
	for i, pattern := range g.allowed {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Quote(pattern))
	}
	b.WriteString(`],"resource_quotas":{`)
	for i, resource := range slices.Sorted(maps.Keys(g.quotas)) {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", resource, g.quotas[resource])
	}
	b.WriteByte('}')
	if g.expires != nil {
		fmt.Fprintf(&b, `,"expires_at_tick":%d`, *g.expires)
	}
	return b.String()
}
