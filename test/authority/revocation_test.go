package authority_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/test/authority/model"
)

// The phases of TestRevocation's victim, according to the operator's answers. A round has four phases, in this order.
const (
	granted  = iota // a grant was acknowledged
	revoking        // a revocation was requested
	revoked         // the revocation was acknowledged
	granting        // a grant was requested
	phases
)

// TestRevocation grants and revokes during concurrent calls in every domain: no call that starts after the revocation was acknowledged
// succeeds, and none that starts after the grant was acknowledged is denied. Other callers keep the registry busy, so that the revocation
// also runs on other goroutines than the revoker's.
func TestRevocation(t *testing.T) {
	t.Parallel()
	rounds := testkit.Rounds(10, 20, 50)
	s, _ := start(t, &config{pools: map[string]float64{"gpu": 1}, mailbox: 50})
	op := s.connect(model.Operator)
	const all = `{"allowed_syscalls":["*"],"resource_quotas":{"gpu":1}}`
	victim, unrelated := op.spawn(t, all), op.spawn(t, all)

	var phase, ok, denied atomic.Int64
	var busy sync.WaitGroup
	stop := make(chan struct{})
	background := func(c *client, call func(n int) request, look func(before, after int64, r request, a answer)) {
		busy.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				before, r := phase.Load(), call(n)
				a, err := c.ask(r)
				if err != nil {
					t.Error(err)
					return
				}
				look(before, phase.Load(), r, a)
			}
		})
	}
	look := func(before, after int64, r request, a answer) {
		switch a.code {
		case 0:
			ok.Add(1)
		case 403:
			denied.Add(1)
		default:
			t.Errorf("%s: %s", r, a)
		}
		if before != after {
			return // the phase changed during the call
		}
		if a.code == 0 && before%phases == revoked {
			t.Errorf("%s succeeded, which began after the revocation was acknowledged", r)
		}
		if a.code == 403 && before%phases == granted {
			t.Errorf("%s was denied, which began after the grant was acknowledged: %s", r, a)
		}
	}
	calls := []request{
		{typ: "Memory.Set", data: `{"key":"k","value":1}`},
		{typ: "Syscall.Query", data: `{"resource_id":"gpu"}`},
		{typ: "Syscall.CommitDelta", data: `{"changes":{"n":1}}`},
		{typ: "Syscall.Alloc", data: `{"resource_id":"gpu","amount":0}`},
		{typ: "Clock.Get", data: `{}`},
		{typ: "Memory.List", data: `{}`},
	}
	for i := range 8 {
		background(s.connect(victim), func(n int) request { return calls[(n+i)%len(calls)] }, look)
	}
	grant := request{typ: "Capability.Grant", data: fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["Memory.*"]}`, unrelated)}
	for range 3 {
		background(s.connect(model.Operator), func(int) request { return grant }, func(_, _ int64, r request, a answer) {
			if a.code != 0 {
				t.Errorf("%s: %s", r, a)
			}
		})
	}
	// Each phase must contain enough complete calls, but the wait for them is bounded.
	await := func(count *atomic.Int64) {
		for past, asked := count.Load(), 0; count.Load() < past+16; asked++ {
			if asked == 100_000 {
				t.Fatal("the callers have stopped calling")
			}
			op.must(t, "Syscall.Ping", `{"payload":0}`)
		}
	}
	func() {
		defer busy.Wait()
		defer close(stop)
		for range rounds {
			await(&ok)
			phase.Add(1)
			op.must(t, "Capability.Revoke", fmt.Sprintf(`{"pid":%d}`, victim))
			phase.Add(1)
			await(&denied)
			phase.Add(1)
			op.must(t, "Capability.Grant", fmt.Sprintf(`{"pid":%d,%s`, victim, all[1:]))
			phase.Add(1)
		}
	}()
}
