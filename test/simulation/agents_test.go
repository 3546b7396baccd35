package simulation_test

import (
	"fmt"
	"slices"
	"strings"
)

// The values that requests draw from. Amounts are whole tenths, as in the model.
var (
	pools    = map[string]float64{"gpu": 1, "ram": 5}
	amounts  = []string{"0.1", "0.3", "1", "2.5"}
	patterns = []string{
		"*", "Memory.*", "Ipc.*", "Syscall.*", "Capability.*", "Audit.Subscribe", "Memory.Get", "SYS_ALLOC", "SYS_SEND_MSG", "SYS_SPAWN",
		"Ipc.Receive", "Ipc.Subscribe", "Capability.Grant", "SYS_TERMINATE",
	}
	intents = []string{"", "", "", "a", "b"}
)

// boxCapacity is the capacity of a mailbox in messages.
const boxCapacity = 6

// pick draws an element of a list.
func pick[T any](w *world, list []T) T { return list[w.r.IntN(len(list))] }

// somebody draws a PID: mostly that of a recent spawn, sometimes 0 or one that does not exist.
func (w *world) somebody() int64 {
	if len(w.agents) == 0 || w.r.IntN(12) == 0 {
		return int64(w.r.IntN(len(w.agents) + 2))
	}
	return pick(w, w.agents[max(0, len(w.agents)-4):])
}

// process draws a PID like somebody, but not the operator's.
func (w *world) process() int64 { return max(1, w.somebody()) }

// grant draws the members of a grant.
func (w *world) grant() string {
	allowed := `"*"`
	if w.r.IntN(2) > 0 {
		var list []string
		for range 1 + w.r.IntN(4) {
			list = append(list, fmt.Sprintf("%q", pick(w, patterns)))
		}
		allowed = strings.Join(list, ",")
	}
	text := `"allowed_syscalls":[` + allowed + `]`
	if w.r.IntN(3) > 0 {
		text += fmt.Sprintf(`,"resource_quotas":{"gpu":%s,"ram":%s}`, pick(w, amounts), pick(w, amounts))
	}
	if w.r.IntN(4) == 0 {
		text += fmt.Sprintf(`,"expires_at_tick":%d`, w.oracle.Tick+int64(w.r.IntN(4)))
	}
	return text
}

// budget draws the budget that the operator grants to a child at times. It is larger than a run uses.
func (w *world) budget(c *client) string {
	if c.pid != 0 || w.r.IntN(2) == 0 {
		return ""
	}
	return `,"budget":{"calls":1000000}`
}

// errand is a kind of request. weight is its relative frequency; data draws the members of its data.
type errand struct {
	weight int
	typ    string
	data   func(*world, *client) string
}

// errands are the requests besides those for memory.
var errands = []errand{
	{6, "Syscall.Spawn", func(w *world, c *client) string {
		name := fmt.Sprintf("a%d", w.requests)
		if w.r.IntN(10) == 0 {
			name = "same"
		}
		if w.r.IntN(5) == 0 {
			return fmt.Sprintf(`"child_agent_id":%q`, name)
		}
		return fmt.Sprintf(`"child_agent_id":%q,"capabilities":{%s%s}`, name, w.grant(), w.budget(c))
	}},
	{6, "Capability.Grant", func(w *world, _ *client) string {
		mode := pick(w, []string{"", "", `,"mode":"add"`})
		budget := ""
		if w.r.IntN(6) == 0 {
			budget = `,"budget":{"tokens":0}` // never used up: nobody uses tokens
		}
		return fmt.Sprintf(`"pid":%d,%s%s%s`, w.process(), w.grant(), mode, budget)
	}},
	{1, "Capability.GrantDefault", func(w *world, _ *client) string { return fmt.Sprintf(`"pid":%d`, w.process()) }},
	{4, "Capability.Revoke", func(w *world, _ *client) string { return fmt.Sprintf(`"pid":%d`, w.process()) }},
	{1, "Capability.RevokeExpired", func(*world, *client) string { return "" }},
	{4, "Capability.Check", func(w *world, _ *client) string {
		if w.r.IntN(2) == 0 {
			return fmt.Sprintf(`"pid":%d,"syscall":"SYS_ALLOC","resource_id":"gpu","amount":%s`, w.somebody(), pick(w, amounts))
		}
		return fmt.Sprintf(`"pid":%d,"syscall":"Memory.Set"`, w.somebody())
	}},
	{2, "Syscall.Terminate", func(w *world, c *client) string { return fmt.Sprintf(`"target_pid":%d`, w.process()) + w.target(c) }},
	{3, "Clock.Advance", func(w *world, _ *client) string { return fmt.Sprintf(`"ticks":%d`, w.r.IntN(3)) }},
	{6, "Approval.Decide", func(w *world, _ *client) string {
		lasting := pick(w, []string{"", "", `,"for_seconds":2`})
		return fmt.Sprintf(`"id":%q,"decision":"approve"%s`, w.waiting(), lasting)
	}},
	{2, "Approval.Decide", func(w *world, _ *client) string { return fmt.Sprintf(`"id":%q,"decision":"refuse"`, w.waiting()) }},
	{3, "Process.Pause", func(w *world, _ *client) string { return fmt.Sprintf(`"target_pid":%d`, w.process()) }},
	{4, "Process.Resume", func(w *world, _ *client) string { return fmt.Sprintf(`"target_pid":%d`, w.process()) }},
	{16, "Syscall.Alloc", func(w *world, c *client) string { return w.units(c) }},
	{4, "Syscall.Release", func(w *world, c *client) string { return w.units(c) }},
	{3, "Syscall.Query", func(w *world, c *client) string { return `"resource_id":"ram"` + w.target(c) }},
	{18, "Syscall.SendMsg", func(w *world, c *client) string {
		text := fmt.Sprintf(`"receiver_pid":%d`, w.somebody()) + w.letter()
		if w.r.IntN(3) == 0 {
			text += `,"priority":"URGENT"`
		}
		if w.r.IntN(6) == 0 {
			text += fmt.Sprintf(`,"expires_at_tick":%d`, max(0, w.oracle.Tick+int64(w.r.IntN(4))-1))
		}
		return text + w.target(c)
	}},
	{4, "Ipc.Broadcast", func(w *world, c *client) string { return w.letter()[1:] + w.target(c) }},
	{12, "Ipc.Receive", func(w *world, c *client) string {
		list := []string{}
		if w.r.IntN(2) == 0 {
			list = append(list, fmt.Sprintf(`"max":%d`, 1+w.r.IntN(3)))
		}
		if w.r.IntN(4) == 0 {
			list = append(list, `"intent":"a"`)
		}
		switch w.r.IntN(8) { // no two waits end at the same time
		case 0:
			list = append(list, fmt.Sprintf(`"wait_ms":%d`, 2000+w.requests))
		case 1:
			list = append(list, fmt.Sprintf(`"wait_ms":%d`, longWait-w.requests))
		}
		if w.r.IntN(3) > 0 {
			list = append(list, `"ack":true`)
		}
		if as := w.target(c); strings.Contains(as, "pid") { // a tick would advance the clock before the entry is in the journal
			list = append(list, as[1:])
		}
		return strings.Join(list, ",")
	}},
	{3, "Ipc.Subscribe", func(w *world, c *client) string { return fmt.Sprintf(`"ack":%v`, w.r.IntN(2) == 0) + w.target(c) }},
	{5, "Ipc.Ack", func(w *world, c *client) string {
		ids := []string{fmt.Sprint(1 + w.r.IntN(int(w.oracle.Messages)+2))}
		for _, l := range w.oracle.boxOf(c.pid).Letters {
			if l.Conn != "" && w.r.IntN(2) == 0 {
				ids = append(ids, fmt.Sprint(l.MsgID))
			}
		}
		return `"msg_ids":[` + strings.Join(ids, ",") + `]`
	}},
	{2, "Audit.Subscribe", func(w *world, _ *client) string {
		if w.r.IntN(2) == 0 {
			return ""
		}
		return fmt.Sprintf(`"since_seq":%d`, 1+w.r.IntN(len(w.oracle.entries)+1))
	}},
}

// operators are the types that only the operator requests here.
var operators = []string{"Approval.Decide", "Process.Pause", "Process.Resume"}

// mail are the errands about mail, which begin with Syscall.SendMsg.
var mail = errands[slices.IndexFunc(errands, func(e errand) bool { return e.typ == "Syscall.SendMsg" }):]

// longWait is the longest wait of a receive, in milliseconds.
const longWait = 600_000

func (w *world) units(c *client) string {
	return fmt.Sprintf(`"resource_id":%q,"amount":%s`, pick(w, []string{"gpu", "ram"}), pick(w, amounts)) + w.target(c)
}

func (w *world) letter() string {
	text := fmt.Sprintf(`,"payload":"m%d"`, w.requests)
	if intent := pick(w, intents); intent != "" {
		text += fmt.Sprintf(`,"intent":%q`, intent)
	}
	return text
}

// target draws a target: the operator acts for a process or names a tick, and an agent tries to sometimes.
func (w *world) target(c *client) string {
	switch n := w.r.IntN(40); {
	case len(w.agents) > 0 && (n < 12 && c.pid == 0 || n == 0):
		return fmt.Sprintf(`,"pid":%d`, pick(w, w.agents)) // an existing one: a child's token exists before the child
	case n == 13:
		return fmt.Sprintf(`,"tick":%d`, w.oracle.Tick+int64(w.r.IntN(2)))
	}
	return ""
}

// draw draws an errand of a list by weight, and returns its request.
func (w *world) draw(c *client, list []errand) (typ, data string) {
	if len(w.agents) == 0 && w.r.IntN(3) == 0 {
		return w.run(errands[0], c)
	}
	all := 0
	for _, e := range list {
		all += e.weight
	}
	n := w.r.IntN(all)
	i := slices.IndexFunc(list, func(e errand) bool {
		n -= e.weight
		return n < 0
	})
	return w.run(list[i], c)
}

// run returns the request of an errand, or a ping if the client or the scenario excludes the errand.
func (w *world) run(e errand, c *client) (typ, data string) {
	if w.drops(e.typ) || c.pid != 0 && slices.Contains(operators, e.typ) || e.typ == "Audit.Subscribe" && c.audits { // at most one subscription each
		return "Syscall.Ping", fmt.Sprintf(`{"payload":%d}`, w.requests)
	}
	c.audits = c.audits || e.typ == "Audit.Subscribe"
	return e.typ, "{" + e.data(w, c) + "}"
}

// caller draws the PID of a new connection: the operator, or a process, which may have ended.
func (w *world) caller() int64 {
	if len(w.agents) == 0 || w.r.IntN(3) == 0 {
		return 0
	}
	return max(0, w.process())
}
