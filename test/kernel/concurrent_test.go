package kernel_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// TestPoolUnderLoad has 64 callers that allocate from one pool and release: no answer grants a process more than its quota,
// nor all together more than the pool, and at the end the ledger agrees with the answers.
func TestPoolUnderLoad(t *testing.T) {
	t.Parallel()
	const callers, calls, quota, capacity = 64, 40, 30, 100
	d := start(t)
	c := d.dial(t)
	pids, held := make([]int64, callers), make([]float64, callers)
	for i := range pids {
		pids[i] = c.spawn(0, fmt.Sprintf(`{"allowed_syscalls":["*"],"resource_quotas":{"ram":%d}}`, quota))
	}
	c.call("Syscall.Alloc", fmt.Sprintf(`{"resource_id":"ram","amount":%d}`, 1000-capacity), nil)

	// What is certainly held: increased after the answer of an allocation, decreased before a release is sent.
	var certain, refusals atomic.Int64
	var all sync.WaitGroup
	for i, pid := range pids {
		own := d.dial(t)
		all.Go(func() {
			for n := range calls {
				amount := float64(1 + (i+7*n)%7)
				data := fmt.Sprintf(`{"pid":%d,"resource_id":"ram","amount":%v}`, pid, amount)
				if n%3 == 2 && held[i] >= amount {
					certain.Add(-int64(amount))
					if a := own.ask("Syscall.Release", data); a.Kind != "reply" {
						t.Errorf("release of what is held: %s", a.Data)
					}
					held[i] -= amount
					continue
				}
				a := own.ask("Syscall.Alloc", data)
				if a.Kind != "reply" {
					refusals.Add(1)
					continue
				}
				if now := certain.Add(int64(amount)); now > capacity {
					t.Errorf("%d held of %d", now, capacity)
				}
				if held[i] += amount; held[i] > quota {
					t.Errorf("pid %d holds %v", pid, held[i])
				}
			}
		})
	}
	all.Wait()
	sum := 0.0
	for i, pid := range pids {
		if got := c.holdings(pid).Held["ram"]; got != held[i] {
			t.Errorf("pid %d holds %v, its answers sum up to %v", pid, got, held[i])
		}
		sum += held[i]
	}
	if got := c.available("ram"); got != capacity-sum || refusals.Load() == 0 {
		t.Errorf("%v available, want %v; %d refusals", got, capacity-sum, refusals.Load())
	}
}

// TestRevocation revokes a token while others use it: no call that started after the answer succeeds.
func TestRevocation(t *testing.T) {
	t.Parallel()
	const callers, rounds = 8, 15
	d := start(t)
	c := d.dial(t)
	pid := c.spawn(0, messenger)
	var epoch atomic.Int64 // odd: the revocation was acknowledged and no grant was requested since
	var succeeded atomic.Int64
	stop := make(chan struct{})
	var all sync.WaitGroup
	for i := range callers {
		own := d.dial(t)
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				before := epoch.Load()
				typ, data := "Memory.Set", fmt.Sprintf(`{"pid":%d,"key":"k/%d","value":%d}`, pid, i, n)
				if n%2 == 1 {
					typ, data = "Syscall.Query", fmt.Sprintf(`{"pid":%d,"resource_id":"gpu"}`, pid)
				}
				a := own.ask(typ, data)
				if a.Kind == "reply" {
					succeeded.Add(1)
				}
				if a.Kind == "reply" && before%2 == 1 && epoch.Load() == before {
					t.Errorf("%s succeeded that began after the revocation was acknowledged", typ)
				}
			}
		})
	}
	for range rounds {
		c.call("Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["*"]}`, pid), nil)
		for past := succeeded.Load(); succeeded.Load() < past+callers; {
			c.call("Syscall.Ping", `{"payload":0}`, nil)
		}
		c.call("Capability.Revoke", fmt.Sprintf(`{"pid":%d}`, pid), nil)
		epoch.Add(1)
		for range 2 * callers {
			c.call("Syscall.Ping", `{"payload":0}`, nil)
		}
		epoch.Add(1)
	}
	close(stop)
	all.Wait()
}
