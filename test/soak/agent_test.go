package soak_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
)

const (
	agents = 8  // at work at once
	keys   = 32 // of each
)

// agent makes random calls. It changes only its own state, so that it knows every answer beforehand, and it undoes every
// change, so that the kernel's state does not grow, except where this test says so.
type agent struct {
	place  *place
	pid    int64 // the process that it acts for
	deaf   int64 // a process that gets no messages
	chance *rand.Rand
	calls  *atomic.Int64 // made by all agents
}

// rights are the capabilities of a process that an agent acts for.
const rights = `{"allowed_syscalls":["Memory.*","Ipc.*","SYS_ALLOC","SYS_RELEASE","SYS_SEND_MSG","SYS_COMMIT_DELTA","SYS_ROLLBACK",` +
	`"SYS_CHECKPOINT","SYS_GET_STATE"],"resource_quotas":{"gpu":4}}`

// enlist spawns the processes that agents act for.
func enlist(p *place, calls *atomic.Int64) ([]*agent, error) {
	c, err := p.dial()
	if err != nil {
		return nil, err
	}
	all := make([]*agent, agents)
	err = c.call("Clock.Advance", `{"ticks":1}`, nil) // no delta has tick 0, so that a rollback to it drops all
	for i := range all {
		var pids [2]int64
		for j := range pids {
			var out struct {
				ChildPID int64 `json:"child_pid"`
			}
			err = errors.Join(err, c.call("Syscall.Spawn", fmt.Sprintf(`{"child_agent_id":"agent-%d-%d","capabilities":%s}`, i, j, rights), &out))
			pids[j] = out.ChildPID
		}
		all[i] = &agent{place: p, pid: pids[0], deaf: pids[1], chance: rand.New(rand.NewPCG(uint64(i), 7)), calls: calls}
	}
	return all, c.end(err)
}

// work makes calls until all agents have made that many, on one connection after the other.
func (a *agent) work(until int64) error {
	for a.calls.Load() < until {
		c, err := a.place.dial()
		if err != nil {
			return err
		}
		for range 1 + a.chance.IntN(200) {
			if err = a.scene(c); err != nil || a.calls.Load() >= until {
				break
			}
		}
		if err := c.end(err); err != nil {
			return fmt.Errorf("pid %d: %w", a.pid, err)
		}
	}
	return nil
}

// scene does a random scene.
func (a *agent) scene(c *conn) error {
	all := []struct {
		name string
		play func(*conn) error
	}{
		{"talk", a.talk},
		{"remember", a.remember},
		{"family", a.family},
		{"take", a.take},
		{"write", a.write},
		{"await", a.await},
		{"learn", a.learn},
		{"look", a.look},
		{"repeat", a.repeat},
		{"err", a.err},
		{"stumble", a.stumble},
		{"visit", a.visit},
		{"leave", a.leave},
	}
	before, one := c.sent, all[a.chance.IntN(len(all))]
	err := one.play(c)
	a.calls.Add(int64(c.sent - before))
	if err != nil {
		return fmt.Errorf("%s: %w", one.name, err)
	}
	return nil
}

// other opens a further connection for do, closes it afterwards, and counts its calls too.
func (a *agent) other(do func(*conn) error) error {
	c, err := a.place.dial()
	if err != nil {
		return err
	}
	err = do(c)
	a.calls.Add(int64(c.sent))
	return c.end(err)
}

// settle restores the agent's initial state, which it also has at the end.
func (a *agent) settle() error {
	return a.other(func(c *conn) error {
		for i := range keys {
			c.ask(0, "Memory.Set", fmt.Sprintf(`{"pid":%d,"key":"soak/%d/%d","value":%q}`, a.pid, a.pid, i, "the same forever"))
		}
		c.ask(0, "Syscall.Rollback", fmt.Sprintf(`{"pid":%d,"to_tick":0}`, a.pid))
		c.ask(0, "Ipc.Receive", fmt.Sprintf(`{"pid":%d,"max":1000}`, a.pid))
		if _, err := c.flush(); err != nil {
			return err
		}
		var token struct {
			Held map[string]float64 `json:"held"`
		}
		if err := c.call("Capability.Get", fmt.Sprintf(`{"pid":%d}`, a.pid), &token); err != nil || token.Held["gpu"] == 0 {
			return err
		}
		return c.call("Syscall.Release", fmt.Sprintf(`{"pid":%d,"resource_id":"gpu","amount":%v}`, a.pid, token.Held["gpu"]), nil)
	})
}
