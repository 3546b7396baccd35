package kernel_test

import (
	"fmt"
	"testing"
)

// descriptor has the members of a process that the tests use.
type descriptor struct {
	PID       int64  `json:"pid"`
	ParentPID int64  `json:"parent_pid"`
	State     string `json:"state"`
	ExitTick  *int64 `json:"exit_tick"`
}

func (c *client) process(pid int64) (p descriptor) {
	c.t.Helper()
	c.call("Process.Get", fmt.Sprintf(`{"pid":%d}`, pid), &p)
	return p
}

// TestTree ends the middle of a line of processes: it and its descendants lose their tokens, resources and mailboxes;
// others keep theirs. PIDs are not reused.
func TestTree(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.dial(t)
	const all = `{"allowed_syscalls":["*"],"resource_quotas":{"gpu":2}}`
	top := c.spawn(0, all)
	middle, beside := c.spawn(top, all), c.spawn(top, all)
	bottom := c.spawn(middle, all)
	for _, pid := range []int64{middle, beside, bottom} { // by the operator, so that each has a separate quota
		c.call("Capability.Grant", fmt.Sprintf(`{"pid":%d,%s`, pid, all[1:]), nil)
	}
	if p := c.process(bottom); p.ParentPID != middle || p.State != "READY" {
		t.Errorf("child: %+v, want parent %d", p, middle)
	}
	for _, pid := range []int64{top, middle, beside, bottom} {
		c.call("Syscall.Alloc", fmt.Sprintf(`{"pid":%d,"resource_id":"gpu","amount":2}`, pid), nil)
		c.call("Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":1}`, pid), nil)
	}
	c.refused(403, "Syscall.Terminate", fmt.Sprintf(`{"pid":%d,"target_pid":%d}`, beside, bottom))

	for range 2 { // it may be repeated
		c.call("Syscall.Terminate", fmt.Sprintf(`{"pid":%d,"target_pid":%d}`, top, middle), nil)
	}
	for _, pid := range []int64{middle, bottom} {
		if p := c.process(pid); p.State != "TERMINATED" || p.ExitTick == nil {
			t.Errorf("pid %d: %+v", pid, p)
		}
		c.refused(404, "Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":1}`, pid), "no mailbox")
		c.refused(410, "Memory.List", fmt.Sprintf(`{"pid":%d}`, pid), "has ended")
	}
	if got := c.available("gpu"); got != 4 {
		t.Errorf("%v available, want 4: two hold 2 each", got)
	}
	for _, pid := range []int64{top, beside} {
		if p := c.process(pid); p.State != "READY" || c.holdings(pid).Held["gpu"] != 2 {
			t.Errorf("pid %d: %+v, holds %v", pid, p, c.holdings(pid).Held)
		}
	}
	d.restart(t)
	again := d.dial(t)
	again.spawned = c.spawned
	if next := again.spawn(0, all); next <= bottom {
		t.Errorf("PID %d after %d", next, bottom)
	}
}

// TestNoMoreThanItself: a process that spawns and grants cannot give what it does not have.
func TestNoMoreThanItself(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	pid := c.spawn(0, `{"allowed_syscalls":["SYS_SPAWN","Memory.*"],"resource_quotas":{"gpu":2},"expires_at_tick":9}`)
	for _, more := range []string{
		`{"allowed_syscalls":["*"],"expires_at_tick":9}`,
		`{"allowed_syscalls":["SYS_ALLOC"],"expires_at_tick":9}`,
		`{"allowed_syscalls":["Memory.Get"],"resource_quotas":{"gpu":3},"expires_at_tick":9}`,
		`{"allowed_syscalls":["Memory.Get"],"resource_quotas":{"ram":1},"expires_at_tick":9}`,
		`{"allowed_syscalls":["Memory.Get"],"expires_at_tick":10}`,
		`{"allowed_syscalls":["Memory.Get"]}`,
	} {
		c.refused(403, "Syscall.Spawn", fmt.Sprintf(`{"pid":%d,"child_agent_id":"x","capabilities":%s}`, pid, more))
	}
	child := c.spawn(pid, `{"allowed_syscalls":["Memory.Get"],"resource_quotas":{"gpu":2},"expires_at_tick":9}`)
	if child != pid+1 {
		t.Errorf("PID %d after %d: a refused spawn took one", child, pid)
	}
}
