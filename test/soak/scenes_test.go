package soak_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

func flushed(c *conn) error {
	_, err := c.flush()
	return err
}

// talk makes queries, one by one or pipelined.
func (a *agent) talk(c *conn) error {
	for range 1 + a.chance.IntN(12) {
		c.ask(0, "Syscall.Ping", `{"payload":{"n":[1,2.50,"three"]}}`)
		c.ask(0, "Syscall.Echo", `{"message":"soak"}`)
		if a.chance.IntN(3) == 0 {
			if err := flushed(c); err != nil {
				return err
			}
		}
	}
	return flushed(c)
}

// remember sets a key, deletes it, and sets it again.
func (a *agent) remember(c *conn) error {
	key := fmt.Sprintf(`"pid":%d,"key":"soak/%d/%d"`, a.pid, a.pid, a.chance.IntN(keys))
	set := fmt.Sprintf(`{%s,"value":%q}`, key, strings.Repeat("v", a.chance.IntN(300)))
	c.ask(0, "Memory.Set", set)
	c.ask(0, "Memory.Get", `{`+key+`}`)
	c.ask(0, "Memory.List", fmt.Sprintf(`{"pid":%d,"prefix":"soak/%d/","limit":5}`, a.pid, a.pid))
	c.ask(0, "Memory.Delete", `{`+key+`}`)
	c.ask(404, "Memory.Get", `{`+key+`}`)
	c.ask(404, "Memory.Delete", `{`+key+`}`)
	c.ask(0, "Memory.Set", set)
	return flushed(c)
}

// family spawns a child, grants it a capability, revokes that, and terminates it.
func (a *agent) family(c *conn) error {
	var out struct {
		PID int64 `json:"child_pid"`
	}
	if err := c.call("Syscall.Spawn", fmt.Sprintf(`{"child_agent_id":"child-%d","capabilities":{"allowed_syscalls":["SYS_ALLOC"],"resource_quotas":{"gpu":1}}}`, rand.Uint64()), &out); err != nil {
		return err
	}
	alloc := fmt.Sprintf(`{"pid":%d,"resource_id":"gpu","amount":1}`, out.PID)
	c.ask(0, "Syscall.Alloc", alloc)
	c.ask(0, "Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":"left in the mailbox"}`, out.PID))
	c.ask(0, "Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["SYS_ALLOC"],"resource_quotas":{"gpu":2}}`, out.PID))
	c.ask(0, "Syscall.Alloc", alloc)
	c.ask(429, "Syscall.Alloc", alloc)
	c.ask(0, "Capability.Revoke", fmt.Sprintf(`{"pid":%d}`, out.PID))
	c.ask(403, "Syscall.Alloc", alloc)
	for range 2 {
		c.ask(0, "Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d,"reason":"done"}`, out.PID))
	}
	c.ask(0, "Process.Get", fmt.Sprintf(`{"pid":%d}`, out.PID))
	return flushed(c)
}

// take allocates and releases resources.
func (a *agent) take(c *conn) error {
	units := func(n string) string { return fmt.Sprintf(`{"pid":%d,"resource_id":"gpu","amount":%s}`, a.pid, n) }
	c.ask(0, "Syscall.Alloc", units("1.5"))
	c.ask(0, "Syscall.Alloc", units("0.1"))
	c.ask(429, "Syscall.Alloc", units("4"))
	c.ask(0, "Syscall.Query", `{"resource_id":"gpu"}`)
	c.ask(0, "Syscall.Release", units("0.1"))
	c.ask(0, "Syscall.Release", units("1.5"))
	c.ask(409, "Syscall.Release", units("5"))
	return flushed(c)
}

// write sends messages to the agent itself, and reads them.
func (a *agent) write(c *conn) error {
	n := 1 + a.chance.IntN(5)
	for i := range n {
		c.ask(0, "Syscall.SendMsg", fmt.Sprintf(`{"pid":%d,"receiver_pid":%d,"payload":%d,"priority":%q}`,
			a.pid, a.pid, i, []string{"LOW", "URGENT"}[a.chance.IntN(2)]))
	}
	return a.receive(c, n, `"max":10`)
}

// receive receives messages, and checks their number.
func (a *agent) receive(c *conn, want int, how string) error {
	c.ask(0, "Ipc.Receive", fmt.Sprintf(`{"pid":%d,%s}`, a.pid, how))
	data, err := c.flush()
	if err != nil {
		return err
	}
	var box struct {
		Messages []json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal(data, &box); err != nil {
		return err
	}
	if len(box.Messages) != want {
		return &wrongError{fmt.Sprintf("pid %d received %s, want %d messages", a.pid, data, want)}
	}
	return nil
}

// await waits for a message that another connection sends, or for none.
func (a *agent) await(c *conn) error {
	if a.chance.IntN(4) == 0 {
		return a.receive(c, 0, `"wait_ms":1`)
	}
	return a.other(func(sender *conn) error {
		c.ask(0, "Ipc.Receive", fmt.Sprintf(`{"pid":%d,"wait_ms":600000}`, a.pid))
		if err := c.push(); err != nil {
			return err
		}
		sender.ask(0, "Syscall.SendMsg", fmt.Sprintf(`{"pid":%d,"receiver_pid":%d,"payload":"wake up"}`, a.pid, a.pid))
		if err := flushed(sender); err != nil {
			return err
		}
		return flushed(c)
	})
}

// learn commits deltas, and deletes them.
func (a *agent) learn(c *conn) error {
	for i := range 1 + a.chance.IntN(6) {
		c.ask(0, "Syscall.CommitDelta", fmt.Sprintf(`{"pid":%d,"changes":{"k%d":{"n":%d}},"resource_changes":{"joy":0.5}}`, a.pid, i, i))
	}
	c.ask(0, "Syscall.Checkpoint", fmt.Sprintf(`{"pid":%d}`, a.pid))
	c.ask(0, "Syscall.GetState", fmt.Sprintf(`{"pid":%d}`, a.pid))
	c.ask(0, "Clock.Advance", `{"ticks":1}`)
	c.ask(0, "Syscall.Rollback", fmt.Sprintf(`{"pid":%d,"to_tick":0}`, a.pid))
	return flushed(c)
}

// look queries the audit log and the kernel's state.
func (a *agent) look(c *conn) error {
	c.ask(0, "Audit.Log", `{"limit":3}`)
	c.ask(0, "Audit.Metrics", `{}`)
	c.ask(0, "Capability.Get", fmt.Sprintf(`{"pid":%d}`, a.pid))
	c.ask(0, "Capability.Check", fmt.Sprintf(`{"pid":%d,"syscall":"Syscall.Alloc","resource_id":"gpu","amount":9}`, a.pid))
	c.ask(0, "Process.Get", fmt.Sprintf(`{"pid":%d}`, a.pid))
	c.ask(0, "Memory.Get", `{"key":"proc/meminfo"}`)
	c.ask(0, "Syscall.Describe", `{"name":"Syscall.Alloc"}`)
	c.ask(0, "Clock.Get", `{}`)
	return flushed(c)
}

// repeat makes a command with the agent's only idempotency key, so it runs once altogether.
func (a *agent) repeat(c *conn) error {
	for range 2 {
		c.askWith(0, "Syscall.SendMsg", fmt.Sprintf(`{"pid":%d,"receiver_pid":%d,"payload":"once"}`, a.pid, a.deaf), `,"idempotencyKey":"the only"`)
	}
	return flushed(c)
}
