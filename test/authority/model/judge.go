package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// Call is a call of a client.
type Call struct {
	From  int64  // owner of the connection
	Conn  string // name of the connection
	Type  string
	Meta  schema.Metadata
	Input any // the data, decoded by the syscall's row
}

// Verdict is the outcome that the rules require for a call.
type Verdict struct {
	Who int64 // the process that the call is made as

	// Barred has the error codes if the call is not allowed, Refused those if it is allowed and must fail. With
	// several codes, any of them is correct; with none, the call must succeed.
	Barred, Refused []int

	Want  string // the data of the reply; with Open, a prefix of it
	Open  bool
	Apply func() // applies the call to the model
}

// deny adds a code of Refused if bad is true.
func (v *Verdict) deny(bad bool, code int) {
	if bad {
		v.Refused = append(v.Refused, code)
	}
}

// Syscalls that all processes may call without a token.
var everyone = []string{"Syscall.Ping", "Syscall.Echo", "Syscall.List", "Syscall.Describe"}

// Bar returns the error codes if a process may not call a syscall; nil if it may.
func (m *Model) Bar(who int64, typ string) []int {
	switch p := m.Proc(who); {
	case p != nil && p.Exit != nil:
		return []int{410}
	case !slices.Contains(everyone, typ) && !m.May(who, typ):
		return []int{403}
	}
	return nil
}

// Judge returns the required outcome of a call now. If the operator names a later tick, Judge advances the clock, even if the call
// must fail; an agent's tick must not be later than the clock (PROTOCOL 6).
func (m *Model) Judge(c *Call) *Verdict {
	v := &Verdict{Who: c.From, Apply: func() {}}
	if in, ok := c.Input.(schema.Targeted); ok {
		on := in.On()
		switch {
		case on.PID == nil:
		case c.From == Operator:
			v.Who = *on.PID
		case *on.PID != c.From:
			v.Barred = append(v.Barred, 403)
		}
		switch {
		case on.Tick == nil:
		case c.From == Operator:
			m.Tick = max(m.Tick, *on.Tick)
		case *on.Tick > m.Tick:
			v.Barred = append(v.Barred, 422)
		}
	}
	v.Barred = append(v.Barred, m.Bar(v.Who, c.Type)...)
	switch in := c.Input.(type) {
	case *schema.SpawnInput:
		m.spawn(v, in)
	case *schema.GrantInput:
		m.grant(v, in.PID, granted(in.AllowedSyscalls, in.ResourceQuotas, in.ExpiresAtTick), in.Adds())
	case *schema.GrantDefaultInput:
		m.grant(v, in.PID, DefaultGrant(slices.Collect(maps.Keys(m.Pools))), false)
	case *schema.RevokeInput:
		m.revoke(v, in)
	case *schema.RevokeExpiredInput:
		m.revokeExpired(v)
	case *schema.TerminateInput:
		m.terminate(v, in)
	case *schema.AllocInput:
		if c.Type == "Syscall.Release" {
			m.release(v, in)
		} else {
			m.alloc(v, in)
		}
	case *schema.SendMsgInput:
		m.send(v, c, in)
	case *schema.BroadcastInput:
		m.broadcast(v, c, in)
	case *schema.ReceiveInput:
		m.receive(v, c, in)
	case *schema.MailSubscribeInput:
		m.subscribe(v, c, in)
	case *schema.MailAckInput:
		m.ack(v, in)
	case *schema.MemorySetInput:
		v.Want = `{"success":true}`
		v.Apply = func() { m.Memory[in.Key] = string(in.Value) }
	case *schema.CommitDeltaInput:
		m.commit(v, in)
	case *schema.ClockAdvanceInput:
		v.Want = fmt.Sprintf(`{"tick":%d}`, m.Tick+in.Ticks)
		v.Apply = func() { m.Tick += in.Ticks }
	case *schema.CheckInput:
		m.check(v, in)
	case *schema.ResourceQueryInput:
		capacity, ok := m.Pools[in.ResourceID]
		v.deny(!ok, 404)
		v.Want, v.Open = fmt.Sprintf(`{"available":%s,"capacity":%s,`, capacity-m.Total(in.ResourceID), capacity), true
	default:
		v.Open = true
	}
	return v
}

// granted returns the grant with these parts.
func granted(allowed []string, units map[string]float64, expires *int64) *Grant {
	g := &Grant{Allowed: allowed, Quotas: map[string]Tenths{}, Expires: expires}
	for resource, amount := range units {
		g.Quotas[resource] = InTenths(amount)
	}
	return g
}

// granting applies the rules for a grant: its resources must exist, and it must not exceed what the granter may do.
func (m *Model) granting(v *Verdict, g *Grant) {
	for resource := range g.Quotas {
		_, ok := m.Pools[resource]
		v.deny(!ok, 422)
	}
	v.deny(v.Who != Operator && !m.within(g, v.Who), 403)
}

func (m *Model) spawn(v *Verdict, in *schema.SpawnInput) {
	name := in.ChildAgentID
	if p := m.Proc(v.Who); p != nil {
		name = p.Agent + "/" + name
	}
	v.deny(slices.ContainsFunc(m.Procs, func(q *Proc) bool { return q.Exit == nil && q.Parent == v.Who && q.Agent == name }), 409)
	g := DefaultGrant(slices.Collect(maps.Keys(m.Pools)))
	switch asked := in.Capabilities; {
	case asked != nil:
		g = granted(asked.AllowedSyscalls, asked.ResourceQuotas, asked.ExpiresAtTick)
		m.granting(v, g)
	case v.Who != Operator:
		g = m.cut(g, v.Who)
	}
	g.By = v.Who
	pid := int64(len(m.Procs)) + 1
	v.Want = fmt.Sprintf(`{"child_pid":%d,"child_agent_id":%q}`, pid, name)
	v.Apply = func() {
		m.Procs = append(m.Procs, &Proc{
			PID: pid, Parent: v.Who, Agent: name, Birth: m.Tick, Quota: g.Quotas, Token: Token{g.canonical()}, Box: new(Box),
		})
	}
}

// grant judges the commands that replace a token or add to one. An agent may grant only to its descendants.
func (m *Model) grant(v *Verdict, pid int64, g *Grant, add bool) {
	target := m.Proc(pid)
	v.deny(target == nil, 404)
	v.deny(target != nil && target.Exit != nil, 409)
	v.deny(v.Who != Operator && !m.Below(pid, v.Who), 403)
	v.deny(g.Expired(m.Tick), 422)
	g.By = v.Who
	made := Token{g.canonical()}
	if add {
		held := m.Token(pid)
		own := held.by(v.Who)
		v.deny(g.Expires == nil && len(held) > 0 && (held.Expired(m.Tick) || own != nil && own.Expired(m.Tick)), 422)
		made = m.added(v, pid, g)
	}
	checked := *g
	if own := made.by(v.Who); own != nil {
		checked.Expires = own.Expires
	}
	m.granting(v, &checked)
	v.Want = made.Shown(pid)
	if target != nil && len(v.Refused) == 0 {
		was := target.Token
		target.Token = made
		if !slices.ContainsFunc(Types, func(typ string) bool { return m.May(pid, typ) }) && !m.holdsAny(pid) {
			v.Want += `,"warning":"no part of this grant is effective`
			v.Open = true
		}
		target.Token = was
	}
	if !v.Open {
		v.Want += "}"
	}
	v.Apply = func() { target.Token = made }
}

// holdsAny reports whether pid has any effective quota, or a token that grants nothing.
func (m *Model) holdsAny(pid int64) bool {
	sum := m.Token(pid).Sum()
	for resource := range sum.Quotas {
		if m.Quota(pid, resource) > 0 {
			return true
		}
	}
	return len(sum.Allowed) == 0 && len(sum.Quotas) == 0
}

// added returns the token of pid after a grant was added. It joins grants of the same granter. A token has at most two
// grants: the operator's and one agent's.
func (m *Model) added(v *Verdict, pid int64, g *Grant) Token {
	before, made := m.Token(pid), Token{}
	joined := before.by(g.By).with(g.canonical())
	for _, other := range before {
		if other.By == g.By {
			continue
		}
		if other.By != Operator && g.By != Operator {
			v.deny(true, 409)
			continue
		}
		kept, more := *other, *joined
		kept.Quotas, more.Quotas = maps.Clone(kept.Quotas), maps.Clone(more.Quotas)
		for resource, amount := range more.Quotas { // only one of the two grants has each resource
			switch had, both := kept.Quotas[resource]; {
			case both && (g.By == Operator || amount > had):
				delete(kept.Quotas, resource)
			case both:
				delete(more.Quotas, resource)
			}
		}
		made, joined = append(made, &kept), &more
	}
	made = append(made, joined)
	slices.SortFunc(made, func(a, b *Grant) int { return int(a.By - b.By) })
	return made
}

func (m *Model) revoke(v *Verdict, in *schema.RevokeInput) {
	v.deny(m.Proc(in.PID) == nil, 404)
	v.deny(v.Who != Operator && !m.Below(in.PID, v.Who), 403)
	v.Want = fmt.Sprintf(`{"pid":%d,"revoked":%v}`, in.PID, m.Token(in.PID) != nil)
	v.Apply = func() { m.Strip(in.PID) }
}

func (m *Model) revokeExpired(v *Verdict) {
	var pids []int64
	for _, q := range m.Procs {
		if q.Token != nil && q.Token.Expired(m.Tick) {
			pids = append(pids, q.PID)
		}
	}
	v.Want = `{"revoked":` + list(pids) + `}`
	v.Apply = func() { m.Strip(pids...) }
}

// terminate judges a termination: a process may end itself and its descendants, the operator any process, also repeatedly.
func (m *Model) terminate(v *Verdict, in *schema.TerminateInput) {
	pid := in.TargetPID
	v.deny(m.Proc(pid) == nil, 404)
	v.deny(v.Who != Operator && v.Who != pid && !m.Below(pid, v.Who), 403)
	v.Want = fmt.Sprintf(`{"target_pid":%d}`, pid)
	v.Apply = func() {
		gone := m.subtree(pid)
		m.Exit(gone...)
		m.Strip(gone...)
		m.Free(gone...)
		m.Close(gone...)
	}
}

// room applies the rules for an allocation: it must fit the quotas of the process and of each granter above it except the operator,
// and the pool. It returns these granters, and the error codes.
func (m *Model) room(pid int64, resource string, amount Tenths) (against []int64, faults []int) {
	capacity, ok := m.Pools[resource]
	if !ok {
		return nil, []int{404}
	}
	for of := pid; of != Operator; {
		g := m.Token(of).of(resource)
		quota := Tenths(0)
		if g != nil && !g.Expired(m.Tick) {
			quota = g.Quotas[resource]
		}
		if m.Used(of, resource)+amount > quota {
			faults = append(faults, 429)
		}
		if g == nil {
			break
		}
		if of = g.By; of != Operator {
			against = append(against, of)
		}
	}
	if m.Total(resource)+amount > capacity {
		faults = append(faults, 507)
	}
	return against, faults
}

func (m *Model) alloc(v *Verdict, in *schema.AllocInput) {
	amount := InTenths(in.Amount)
	against, faults := m.room(v.Who, in.ResourceID, amount)
	v.Refused = faults
	v.Want = fmt.Sprintf(`{"resource_id":%q,"amount":%s,"reserved":%s`, in.ResourceID, amount, m.Held(v.Who, in.ResourceID)+amount)
	if len(against) > 0 {
		v.Want += `,"counted_against":` + list(against)
	}
	v.Want += "}"
	v.Apply = func() {
		if amount > 0 {
			m.loans = append(m.loans, &loan{v.Who, in.ResourceID, amount, against})
		}
	}
}

func (m *Model) release(v *Verdict, in *schema.AllocInput) {
	amount := InTenths(in.Amount)
	_, ok := m.Pools[in.ResourceID]
	v.deny(!ok, 404)
	v.deny(ok && amount > m.Held(v.Who, in.ResourceID), 409)
	v.Want = fmt.Sprintf(`{"resource_id":%q,"amount":%s}`, in.ResourceID, amount)
	v.Apply = func() { m.repay(v.Who, in.ResourceID, amount) }
}

// audience returns the processes that a broadcast reaches, and those whose mailbox is full.
func (m *Model) audience(who int64) (get, full []int64) {
	for _, q := range m.Procs {
		switch {
		case q.Box == nil || q.PID == who:
		case m.Full(q.Box):
			full = append(full, q.PID)
		default:
			get = append(get, q.PID)
		}
	}
	return get, full
}

// send judges a message. PID 0 is a broadcast if the operator sends, and the operator's mailbox if an agent sends. A broadcast fails
// because of full mailboxes only if no process gets it. A message that has already expired also gets an id.
func (m *Model) send(v *Verdict, c *Call, in *schema.SendMsgInput) {
	late := in.ExpiresAtTick != nil && m.Tick > *in.ExpiresAtTick
	get := []int64{in.ReceiverPID}
	switch b := m.BoxOf(in.ReceiverPID); {
	case in.ReceiverPID == Operator && v.Who == Operator:
		var full []int64
		get, full = m.audience(v.Who)
		v.deny(!late && len(get)+len(full) == 0, 404)
		v.deny(!late && len(get) == 0 && len(full) > 0, 429)
	case b == nil:
		v.deny(true, 404)
	default:
		v.deny(!late && m.Full(b), 429)
	}
	mail := mailOf(v, c, in.Intent, in.Payload)
	mail.ExpiresAtTick = in.ExpiresAtTick
	if in.Priority != nil {
		mail.Priority = *in.Priority
	}
	status := "DELIVERED"
	if late {
		status, get, v.Open = "EXPIRED", nil, true
	}
	v.Want = fmt.Sprintf(`{"receiver_pid":%d,"status":%q,"msg_id":%d`, in.ReceiverPID, status, m.Messages+1)
	if !late {
		v.Want += "}"
	}
	v.Apply = func() { m.post(get, mail) }
}

func (m *Model) broadcast(v *Verdict, c *Call, in *schema.BroadcastInput) {
	get, full := m.audience(v.Who)
	v.Want = `{"delivered":` + list(get) + `,"mailbox_full":` + list(full) + `}`
	v.Apply = func() { m.post(get, mailOf(v, c, in.Intent, in.Payload)) }
}

func mailOf(v *Verdict, c *Call, intent *string, payload schema.Value) schema.MailMessage {
	mail := schema.MailMessage{
		SenderPID: v.Who, Payload: slices.Clone(payload), Priority: "NORMAL", Causation: c.Meta.ID, Correlation: c.Meta.Correlation,
	}
	if intent != nil {
		mail.Intent = *intent
	}
	return mail
}

// mailbox returns the mailbox of the caller, or an empty one if there is none, and denies the call then.
func (m *Model) mailbox(v *Verdict) *Box {
	b := m.BoxOf(v.Who)
	if v.deny(b == nil, 404); b == nil {
		return new(Box)
	}
	return b
}

// receive judges a receive. It assumes that all messages fit in the answer.
func (m *Model) receive(v *Verdict, c *Call, in *schema.ReceiveInput) {
	b := m.mailbox(v)
	got := m.Readable(b, in.Intent)
	if in.Max != nil {
		got = got[:min(int64(len(got)), *in.Max)]
	}
	v.Want = read(got)
	v.Apply = func() { b.take(got, in.Ack != nil && *in.Ack, c.Conn) }
}

func (m *Model) subscribe(v *Verdict, c *Call, in *schema.MailSubscribeInput) {
	b := m.mailbox(v)
	v.deny(c.Meta.IdempotencyKey != "", 422)
	v.deny(b.Follower != "", 409)
	v.Want = fmt.Sprintf(`{"receiver_pid":%d,"ack":%v}`, v.Who, in.Ack != nil && *in.Ack)
	v.Apply = func() { b.Follower = c.Conn }
}

// Deliver judges a delivery to the subscription of a process, which needs the right to subscribe.
func (m *Model) Deliver(who int64, conn string, in *schema.MailDeliverInput) *Verdict {
	v := &Verdict{Who: who, Barred: m.Bar(who, "Ipc.Subscribe")}
	b := m.mailbox(v)
	got := m.Readable(b, nil)
	got = got[:min(int64(len(got)), in.Max)]
	v.Want = read(got)
	v.Apply = func() { b.take(got, in.Ack, conn) }
	return v
}

func (m *Model) ack(v *Verdict, in *schema.MailAckInput) {
	b := m.mailbox(v)
	left, found := m.acknowledge(b, in.MsgIDs)
	v.Want = `{"acknowledged":` + list(found) + `}`
	v.Apply = func() { b.Letters = left }
}

// commit judges a commit: an agent may commit only to its own state, the operator to that of any agent.
func (m *Model) commit(v *Verdict, in *schema.CommitDeltaInput) {
	own := ""
	if p := m.Proc(v.Who); p != nil {
		own = p.Agent
	}
	agent := own
	if in.AgentID != nil {
		agent = *in.AgentID
		v.deny(v.Who != Operator && own != agent, 403)
	} else {
		v.deny(v.Who == Operator, 422)
	}
	v.Want = fmt.Sprintf(`{"agent_id":%q,"delta_seq":%d}`, agent, m.deltas[agent]+1)
	v.Apply = func() { m.deltas[agent]++ }
}

// check judges a check of whether a call would be allowed. The process itself and its ancestors may make it.
func (m *Model) check(v *Verdict, in *schema.CheckInput) {
	pid := in.Of(v.Who)
	v.deny(v.Who != Operator && v.Who != pid && !m.Below(pid, v.Who), 403)
	typ := in.Syscall
	for name, code := range codes {
		if code == typ {
			typ = name
		}
	}
	allowed := len(m.Bar(pid, typ)) == 0
	if in.ResourceID != nil && in.Amount != nil && allowed {
		_, faults := m.room(pid, *in.ResourceID, InTenths(*in.Amount))
		allowed = len(faults) == 0
	}
	v.Want, v.Open = fmt.Sprintf(`{"allowed":%v`, allowed), true
}

// list returns a JSON array of numbers.
func list(pids []int64) string {
	return "[" + strings.Trim(strings.ReplaceAll(fmt.Sprint(pids), " ", ","), "[]") + "]"
}
