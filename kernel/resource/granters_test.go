package resource_test

import (
	"testing"

	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestGrantersQuota: holdings below a granter, by its grants, count against its quota, all the way up, and are
// returned the same way.
func TestGrantersQuota(t *testing.T) {
	t.Parallel()
	b := newBench(t) // 2 is a child of 1, and 3 of 2
	b.tokens[1].Granted.ResourceQuotas["gpu"] = 4
	b.tokens[2].Granted.GrantedBy, b.tokens[3].Granted.GrantedBy = 1, 2

	b.must(3, "Syscall.Alloc", `{"resource_id":"gpu","amount":2}`, `{"resource_id":"gpu","amount":2,"reserved":2,"counted_against":[2,1]}`)
	b.must(2, "Syscall.Alloc", `{"resource_id":"gpu","amount":1}`, `{"resource_id":"gpu","amount":1,"reserved":1,"counted_against":[1]}`)
	b.must(1, "Syscall.Alloc", `{"resource_id":"gpu","amount":1}`, `{"resource_id":"gpu","amount":1,"reserved":1}`)
	full := func(pid int64, asked string) {
		b.refused(pid, "Syscall.Alloc", `{"resource_id":"gpu","amount":0.5}`, fault.QuotaExceeded,
			`quota of gpu`+map[bool]string{true: " of pid 1, which granted it,"}[pid != 1]+` exceeded: pid 1 may hold 4, holds 1 with 3 more held by its grants and `+asked+
				` for 0.5: release some, or allow more with "pwos cap grant 1 --add --quota gpu=4.5"`)
	}
	full(1, "asked")
	full(2, "pid 2 asked")
	full(3, "pid 3 asked")

	// A granter whose quota is below its holdings keeps them, and cannot reserve more, nor can others by its grants.
	b.tokens[1].Granted.ResourceQuotas["gpu"] = 2
	b.must(3, "Syscall.Release", `{"resource_id":"gpu","amount":1}`, `{"resource_id":"gpu","amount":1}`)
	if _, err := b.run(3, "Syscall.Alloc", `{"resource_id":"gpu","amount":0.5}`); err == nil {
		t.Error("an allocation exceeds the quota of its granter")
	}
	b.must(0, "Resource.Free", `{"pids":[3,2]}`, `{"success":true}`)
	b.must(2, "Syscall.Alloc", `{"resource_id":"gpu","amount":1}`, `{"resource_id":"gpu","amount":1,"reserved":1,"counted_against":[1]}`)
}

// TestChargesStay: a holding counts against its granters at the time of the call, whatever is granted later; the
// latest is released first.
func TestChargesStay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.tokens[2].Granted.GrantedBy = 1
	b.alloc(2, "gpu", "2")
	b.tokens[2].Granted.GrantedBy = 0 // the operator grants it directly
	b.alloc(2, "gpu", "3")
	const holdings = `[{"pid":2,"resource_id":"gpu","amount":"2","counted_against":[1]},{"pid":2,"resource_id":"gpu","amount":"3"}]`
	if got := string(domaintest.Snapshot(t, b.ledger)); got != holdings {
		t.Errorf("holdings %s, want %s", got, holdings)
	}
	again := newLedger(t, map[string]float64{"gpu": 8}, b.tokens)
	domaintest.Restore(t, b.ledger, again)
	for _, l := range []*bench{b, {t: t, ledger: again, tokens: b.tokens}} {
		l.alloc(1, "gpu", "3") // 2 of the 5 are held by its grant
		if _, err := l.run(1, "Syscall.Alloc", `{"resource_id":"gpu","amount":0.1}`); err == nil {
			t.Error("holdings below the granter do not count against its quota")
		}
		l.must(2, "Syscall.Release", `{"resource_id":"gpu","amount":4}`, `{"resource_id":"gpu","amount":4}`)
		l.must(1, "Syscall.Alloc", `{"resource_id":"gpu","amount":1}`, `{"resource_id":"gpu","amount":1,"reserved":4}`)
	}
}
