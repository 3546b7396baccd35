package agents_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// Pairs of agents send each other messages, and all of them arrive. The cost is logged, not asserted.
func TestManyAgentsTalk(t *testing.T) {
	agents, messages := testkit.Rounds(20, 20, 1000), testkit.Rounds(20, 20, 100)
	p, daemon := start(t)
	c := p.dial(t)
	c.awaitGone(t, c.spawn(t, allowAll, "exit", "0")) // starts what all agents share
	for _, size := range []struct{ agents, messages int }{{2, 200}, {agents, messages}} {
		before := residentMB(t, daemon.PID())
		began := time.Now()
		pids := p.spawnMany(t, size.agents, "chat", fmt.Sprint(size.messages))
		spawning := time.Since(began)
		with := residentMB(t, daemon.PID())
		t.Logf("%d agents spawned in %v (%v each, 8 at once); daemon %d MB before, %d MB with them (%d KB each)",
			size.agents, spawning.Round(time.Millisecond), (spawning / time.Duration(size.agents)).Round(time.Microsecond),
			before, with, (with-before)<<10/size.agents)

		began = time.Now()
		took := c.talk(t, pids, size.messages)
		talking := time.Since(began)
		slices.Sort(took)
		t.Logf("%d messages each, in %v (%.0f messages/s, a SendMsg and an Ipc.Receive for each); send to receive p50 %d us, p99 %d us",
			size.messages, talking.Round(time.Millisecond), float64(len(took))/talking.Seconds(), took[len(took)/2], took[len(took)*99/100])
	}
}

// talk tells agents the PIDs of their peers, waits until they have finished, and returns the latency of each message.
func (c *client) talk(t *testing.T, pids []int64, messages int) (took []int64) {
	t.Helper()
	for i, pid := range pids {
		testkit.Must(t, c.send("command", "Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":{"peer":%d}}`, pid, pids[i^1])))
	}
	for range pids {
		if f, err := c.next(); err != nil || f.Kind != "reply" {
			t.Fatalf("telling them of each other: %s, %v", f.Data, err)
		}
	}
	for _, pid := range pids {
		d := c.awaitGone(t, pid)
		if number(d.Exit.Code) != 0 {
			t.Fatalf("agent %d ended as %+v", pid, d.Exit)
		}
		var own []int64
		c.must(t, "query", "Memory.Get", fmt.Sprintf(`{"key":"took/%d"}`, pid), &own)
		if len(own) != messages {
			t.Errorf("agent %d received %d messages, want %d", pid, len(own), messages)
		}
		took = append(took, own...)
	}
	return took
}

// spawnMany spawns agents over several connections, and returns their PIDs, ascending.
func (p *place) spawnMany(t *testing.T, n int, program string, args ...string) (pids []int64) {
	t.Helper()
	var mu sync.Mutex
	var spawners sync.WaitGroup
	const connections = 8
	for i := range connections {
		c := p.dial(t)
		spawners.Go(func() {
			for range (n + i) / connections {
				pid := c.spawn(t, allowAll, program, args...)
				mu.Lock()
				pids = append(pids, pid)
				mu.Unlock()
			}
		})
	}
	spawners.Wait()
	slices.Sort(pids)
	if len(pids) != n {
		t.Fatalf("%d of %d agents were spawned", len(pids), n)
	}
	return pids
}
