package authority_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/test/authority/model"
)

const (
	holders     = 16 // processes; each has callers/holders connections
	holderQuota = model.Tenths(33)
	poolSize    = model.Tenths(250) // less than the sum of all quotas
)

// TestConcurrentQuota makes 64 callers, four for each process, allocate from one pool and release. At no entry of the
// journal does a process exceed its quota, or all processes the pool; each refusal was justified; and
// the final holdings are the sum of the callers' answers.
func TestConcurrentQuota(t *testing.T) {
	t.Parallel()
	calls := 120
	if testing.Short() {
		calls = 40
	}
	s, done := start(t, &config{pools: map[string]float64{"ram": poolSize.Units()}, mailbox: 50})
	op := s.connect(model.Operator)
	held := make([]model.Tenths, callers) // by caller, according to its answers
	refused := make([]map[int]int, callers)
	var all sync.WaitGroup
	for range holders {
		op.spawn(t, fmt.Sprintf(`{"allowed_syscalls":["SYS_ALLOC","SYS_RELEASE"],"resource_quotas":{"ram":%s}}`, holderQuota))
	}
	for i := range callers {
		c := s.connect(int64(1 + i%holders))
		refused[i] = map[int]int{}
		all.Go(func() { held[i] = trade(t, c, uint64(i), calls, refused[i]) })
	}
	all.Wait()

	want, sum := map[int64]model.Tenths{}, model.Tenths(0)
	for i, amount := range held {
		want[int64(1+i%holders)] += amount
		sum += amount
	}
	for pid, amount := range want {
		out, err := read[schema.CapabilityGetOutput]("Capability.Get", op.must(t, "Capability.Get", fmt.Sprintf(`{"pid":%d}`, pid)))
		if err != nil || out.Held["ram"].Float() != amount.Units() {
			t.Errorf("pid %d holds %v, %v, the answers to its callers sum up to %s", pid, out, err, amount)
		}
	}
	out, err := read[schema.ResourceQueryOutput]("Syscall.Query", op.must(t, "Syscall.Query", `{"resource_id":"ram"}`))
	if err != nil || out.Available.Float() != (poolSize-sum).Units() {
		t.Errorf("%v available, %v, want %s", out, err, poolSize-sum)
	}
	done()
	if _, err := s.replay(func(*kernel.Call) {}); err != nil {
		t.Error(err)
	}
	walkQuota(t, s, want)
	total := map[int]int{}
	for _, codes := range refused {
		for code, n := range codes {
			total[code] += n
		}
	}
	if total[429] == 0 || total[507] == 0 {
		t.Errorf("refusals %v: quota and pool were never both short", total)
	}
}

// trade allocates and releases random amounts, and returns what it holds according to its answers.
func trade(t *testing.T, c *client, seed uint64, calls int, refused map[int]int) (mine model.Tenths) {
	random := rand.New(rand.NewPCG(seed, 1))
	for range calls {
		typ, amount := "Syscall.Alloc", model.Tenths(1+random.IntN(9))
		if mine > 0 && random.IntN(5) < 2 {
			typ, amount = "Syscall.Release", min(amount, mine)
		}
		a, err := c.ask(request{typ: typ, data: fmt.Sprintf(`{"resource_id":"ram","amount":%s}`, amount)})
		switch {
		case err != nil:
			t.Error(err)
			return mine
		case a.code != 0 && (typ == "Syscall.Release" || (a.code != 429 && a.code != 507)):
			t.Errorf("%s of %s, holding %s: %s", typ, amount, mine, a)
		case a.code != 0:
			refused[a.code]++
		case typ == "Syscall.Release":
			mine -= amount
		default:
			mine += amount
		}
	}
	return mine
}

// walkQuota checks each entry of the journal against the quotas and the pool.
func walkQuota(t *testing.T, s *system, want map[int64]model.Tenths) {
	t.Helper()
	entries, err := s.entries()
	testkit.Must(t, err)
	held, total := map[int64]model.Tenths{}, model.Tenths(0)
	for _, e := range entries {
		in, ok := e.input.(*schema.AllocInput)
		if !ok {
			continue
		}
		amount := model.InTenths(in.Amount)
		if e.typ == "Syscall.Release" {
			amount = -amount
		}
		if e.outcome.Err != nil {
			code := e.outcome.Err.Code()
			overQuota, overPool := held[e.pid]+amount > holderQuota, total+amount > poolSize
			if (code == 429 && !overQuota) || (code == 507 && !overPool) {
				t.Errorf("entry %d: pid %d holds %s, %s in all, and was refused %s with %d", e.seq, e.pid, held[e.pid], total, amount, code)
			}
			continue
		}
		held[e.pid] += amount
		total += amount
		if held[e.pid] < 0 || held[e.pid] > holderQuota || total > poolSize {
			t.Fatalf("entry %d: pid %d holds %s of %s, all hold %s of %s", e.seq, e.pid, held[e.pid], holderQuota, total, poolSize)
		}
	}
	for pid, amount := range want {
		if held[pid] != amount {
			t.Errorf("by the journal pid %d holds %s, want %s", pid, held[pid], amount)
		}
	}
}
