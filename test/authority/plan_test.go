package authority_test

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/test/authority/model"
)

// plan is a step as it is sent, with its verdict.
type plan struct {
	op   int
	conn int64 // owner of the connection
	request
	*model.Verdict
}

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

// callOf has the type of each command's call.
var callOf = [ops]string{
	"Syscall.Spawn", "Capability.Grant", "Capability.GrantDefault", "Capability.Revoke", "Capability.RevokeExpired", "Syscall.Terminate",
	"Syscall.Alloc", "Syscall.Release", "Syscall.SendMsg", "Memory.Set", "Syscall.CommitDelta", "Clock.Advance", "Capability.Check",
}

// planned returns the call of a step, with its verdict.
func planned(m *model.Model, s *step) *plan {
	p := &plan{op: s.op, request: request{typ: callOf[s.op]}}
	row, _ := schema.Lookup(p.typ)
	who := int64(s.by % (len(m.Procs) + 1))
	p.conn = who
	members := ""
	if !strings.HasPrefix(p.typ, "Capability.") && p.typ != "Clock.Advance" {
		members = p.target(m, s, who)
	}
	if s.key > 0 && p.conn == who && row.Kind == schema.KindCommand {
		p.key = "k" + strconv.Itoa(s.key)
	}
	p.data = dataOf(m, s, who, members)
	input, fault := row.Input().Decode([]byte(p.data))
	if fault != nil {
		panic(fmt.Sprintf("%s: %v", p.request, fault)) // a fault of the test
	}
	p.Verdict = m.Judge(&model.Call{From: p.conn, Type: p.typ, Input: input})
	return p
}

// target returns the members that name a process and a tick.
func (p *plan) target(m *model.Model, s *step, who int64) (members string) {
	if who != model.Operator {
		switch s.as {
		case byOperator:
			p.conn = model.Operator
			members += fmt.Sprintf(`,"pid":%d`, who)
		case underAnother:
			members += fmt.Sprintf(`,"pid":%d`, someone(m, s.on))
		}
	}
	if s.key == 0 && s.ticks > 0 {
		members += fmt.Sprintf(`,"tick":%d`, max(0, m.Tick+s.ticks-2))
	}
	return members
}

// someone returns a PID from 1 to one more than the number of processes.
func someone(m *model.Model, n int) int64 { return int64(1 + n%(len(m.Procs)+1)) }

// dataOf returns the data of a step; members are those of its target.
func dataOf(m *model.Model, s *step, who int64, members string) string {
	agent, pid, resource := agents[s.on%len(agents)], someone(m, s.on), poolNames[s.pool]
	switch s.op {
	case opSpawn:
		if !s.offer.none {
			members += `,"capabilities":{` + resolve(m, s.offer, who).Members() + `}`
		}
		return fmt.Sprintf(`{"child_agent_id":%q%s}`, agent, members)
	case opGrant:
		if s.add {
			members = `,"mode":"add"`
		}
		return fmt.Sprintf(`{"pid":%d,%s%s}`, pid, resolve(m, s.offer, who).Members(), members)
	case opGrantDefault, opRevoke:
		return fmt.Sprintf(`{"pid":%d}`, pid)
	case opRevokeExpired:
		return `{}`
	case opTerminate:
		return fmt.Sprintf(`{"target_pid":%d%s}`, pid, members)
	case opAlloc, opRelease:
		return fmt.Sprintf(`{"resource_id":%q,"amount":%s%s}`, resource, s.amount, members)
	case opSendMsg:
		return fmt.Sprintf(`{"receiver_pid":%d,"payload":%s%s}`, s.on%(len(m.Procs)+2), s.amount, members)
	case opSet:
		return fmt.Sprintf(`{"key":"k%d","value":%d%s}`, s.on%3, int64(s.amount), members)
	case opCommitDelta:
		if s.amount > 2 {
			members += fmt.Sprintf(`,"agent_id":%q`, agent)
		}
		return fmt.Sprintf(`{"changes":{"n":%s}%s}`, s.amount, members)
	case opAdvance:
		return fmt.Sprintf(`{"ticks":%d}`, s.ticks)
	case opCheck:
		pid := s.on % (len(m.Procs) + 2)
		if s.amount > 0 {
			return fmt.Sprintf(`{"pid":%d,"syscall":"SYS_ALLOC","resource_id":%q,"amount":%s}`, pid, resource, s.amount)
		}
		return fmt.Sprintf(`{"pid":%d,"syscall":"Memory.Set"}`, pid)
	}
	panic("no such command")
}

// resolve returns the grant that a process offers.
func resolve(m *model.Model, o offer, who int64) *model.Grant {
	if o.like == drawn || m.Token(who) == nil {
		g := &model.Grant{Allowed: o.allowed, Quotas: o.quotas, Expires: o.expires}
		if len(g.Allowed) == 0 {
			g.Allowed = []string{"*"}
		}
		return g
	}
	own := m.Token(who).Sum()
	g := &model.Grant{Allowed: own.Allowed, Quotas: maps.Clone(own.Quotas), Expires: own.Expires}
	if o.like == less {
		g.Allowed = own.Allowed[:(len(own.Allowed)+1)/2]
		for resource := range g.Quotas {
			g.Quotas[resource] /= 2
		}
		if g.Expires == nil || (o.expires != nil && *o.expires < *g.Expires) {
			g.Expires = o.expires
		}
	}
	return g
}
