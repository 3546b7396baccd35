package kernel_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRestart runs random commands, and asks for everything there is before and after restarts: the answers are the same. So
// are the mailboxes, which can be looked at once only, and those of a kernel that did the same without a restart.
func TestRestart(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			t.Parallel()
			replayed, live := life(t, seed, true), life(t, seed, false)
			if diff := cmp.Diff(live, replayed); diff != "" {
				t.Errorf("live and replayed (-live +replayed):\n%s", diff)
			}
			if len(live) == 0 || !strings.Contains(strings.Join(live, "\n"), `"payload":`) {
				t.Error("no message was left to compare")
			}
		})
	}
}

// life is what a kernel answers in the end, mailboxes last.
func life(t *testing.T, seed uint64, restarts bool) []string {
	t.Helper()
	d := start(t)
	c := d.dial(t)
	pids := []int64{c.spawn(0, `{"allowed_syscalls":["*"],"resource_quotas":{"gpu":3}}`)}
	chance := rand.New(rand.NewPCG(seed, 5))
	for range 3 {
		for range 60 {
			pids = c.scramble(chance, pids)
		}
		if !restarts {
			continue
		}
		before := c.everything(pids)
		d.restart(t)
		c = d.dial(t)
		if diff := cmp.Diff(before, c.everything(pids)); diff != "" {
			t.Errorf("before and after a restart (-before +after):\n%s", diff)
		}
	}
	all := c.everything(pids)
	for _, pid := range pids {
		a := c.ask("Ipc.Receive", fmt.Sprintf(`{"pid":%d,"max":100}`, pid))
		all = append(all, fmt.Sprintf("mail of %d: %s", pid, a.Data))
	}
	return all
}

// scramble makes one random call, which may fail.
func (c *client) scramble(chance *rand.Rand, pids []int64) []int64 {
	pid, other, n := pids[chance.IntN(len(pids))], pids[chance.IntN(len(pids))], chance.IntN(5)
	switch chance.IntN(12) {
	case 0:
		c.ask("Memory.Set", fmt.Sprintf(`{"pid":%d,"key":"k/%d","value":%d}`, pid, n, chance.Int()))
	case 1:
		c.ask("Memory.Delete", fmt.Sprintf(`{"key":"k/%d"}`, n))
	case 2, 3:
		if a := c.ask("Syscall.Spawn", fmt.Sprintf(`{"pid":%d,"child_agent_id":"a-%d"}`, pid, n)); a.Kind == "reply" {
			pids = append(pids, int64(len(pids)+1))
		}
	case 4:
		if n == 0 {
			c.ask("Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, other))
		}
	case 5, 6:
		c.ask("Syscall.Alloc", fmt.Sprintf(`{"pid":%d,"resource_id":"gpu","amount":0.%d}`, pid, n))
	case 7:
		c.ask("Syscall.SendMsg", fmt.Sprintf(`{"pid":%d,"receiver_pid":%d,"payload":%d,"expires_at_tick":%d}`, pid, other, n, 20*n))
	case 8:
		c.ask("Ipc.Receive", fmt.Sprintf(`{"pid":%d,"max":2}`, pid))
	case 9:
		c.ask("Syscall.CommitDelta", fmt.Sprintf(`{"pid":%d,"changes":{"k%d":%d},"resource_changes":{"joy":0.1}}`, pid, n, n))
	case 10:
		c.ask("Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["*"],"resource_quotas":{"gpu":%d}}`, pid, n))
	default:
		c.ask("Clock.Advance", fmt.Sprintf(`{"ticks":%d}`, n))
	}
	return pids
}

// everything is what the kernel answers to questions after all that it keeps but the mailboxes.
func (c *client) everything(pids []int64) (all []string) {
	c.t.Helper()
	note := func(typ, data string) {
		all = append(all, fmt.Sprintf("%s %s: %s", typ, data, c.ask(typ, data).Data))
	}
	note("Clock.Get", `{}`)
	note("Memory.List", `{}`)
	for n := range 5 {
		note("Memory.Get", fmt.Sprintf(`{"key":"k/%d"}`, n))
	}
	note("Process.List", `{}`)
	note("Syscall.Query", `{"resource_id":"gpu"}`)
	note("Memory.Get", `{"key":"proc/meminfo"}`)
	for _, pid := range pids {
		note("Process.Get", fmt.Sprintf(`{"pid":%d}`, pid))
		note("Capability.Get", fmt.Sprintf(`{"pid":%d}`, pid))
		note("Syscall.GetState", fmt.Sprintf(`{"target_pid":%d}`, pid))
	}
	return all
}
