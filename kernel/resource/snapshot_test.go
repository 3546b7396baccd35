package resource_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/kernel/resource"
)

// filled is a ledger in which each PID from 1 to n holds half a cpu and two gpus, with ample quotas.
func filled(t testing.TB, n int64) *bench {
	t.Helper()
	b := &bench{t: t, tokens: tokens{}}
	b.ledger = newLedger(t, map[string]float64{"cpu": 1e9, "gpu": 1e9}, b.tokens)
	alloc := [...]*kernel.Call{
		request(t, 1, "Syscall.Alloc", `{"resource_id":"gpu","amount":2}`),
		request(t, 1, "Syscall.Alloc", `{"resource_id":"cpu","amount":0.5}`),
	}
	for pid := int64(1); pid <= n; pid++ {
		b.tokens.grant(pid, map[string]float64{"cpu": 1e9, "gpu": 1e9})
		for _, call := range alloc {
			call.PID = pid
			b.ledger.Apply(call)
		}
	}
	return b
}

func TestSnapshotIsOfItsMoment(t *testing.T) {
	t.Parallel()
	b := filled(t, 3)
	before := domaintest.Snapshot(t, b.ledger)
	write := b.ledger.Snapshot()
	b.must(0, "Resource.Free", `{"pids":[1]}`, `{"success":true}`)
	b.alloc(2, "gpu", "0.5")
	b.alloc(0, "gpu", "1")
	var late []byte
	testkit.Must(t, write(func(chunk []byte) error { late = append(late, chunk...); return nil }))
	if !bytes.Equal(before, late) {
		t.Errorf("snapshot %s, want %s", late, before)
	}
}

// TestSnapshotChunks: a large state has several chunks, each of which is written and read by itself.
func TestSnapshotChunks(t *testing.T) {
	t.Parallel()
	from, chunks := filled(t, 1250), 0
	to := filled(t, 0)
	testkit.Must(t, from.ledger.Snapshot()(func(chunk []byte) error { chunks++; return to.ledger.Restore(bytes.Clone(chunk)) }))
	if chunks != 2 || len(to.ledger.Holders()) != 1250 || !bytes.Equal(domaintest.Snapshot(t, from.ledger), domaintest.Snapshot(t, to.ledger)) {
		t.Errorf("%d chunks restore what %d hold", chunks, len(to.ledger.Holders()))
	}
	to.must(0, "Syscall.Query", `{"resource_id":"cpu"}`, `{"available":999999375,"capacity":1000000000,"utilization":0.000000625}`)
}

func TestSnapshotTellsOfAFailedWrite(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	if err := filled(t, 1).ledger.Snapshot()(func([]byte) error { return full }); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}

func TestReset(t *testing.T) {
	t.Parallel()
	b := filled(t, 3)
	b.ledger.Reset()
	if got := domaintest.Snapshot(t, b.ledger); len(got) != 0 || len(b.ledger.Holders()) != 0 || len(b.ledger.Holdings(1)) != 0 {
		t.Errorf("after a reset it holds %s", got)
	}
	b.must(0, "Syscall.Query", `{"resource_id":"gpu"}`, `{"available":1000000000,"capacity":1000000000,"utilization":0}`)
}

func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	for _, amount := range []string{"0", "-1", "", "gpu", "NaN", "1/3", "1e5", "0x10", "1_000", "+1", ".5", "5.", "1.2.3", strings.Repeat("1", 2000)} {
		err := filled(t, 0).ledger.Restore(fmt.Appendf(nil, `[{"pid":1,"resource_id":"gpu","amount":%q}]`, amount))
		if !errors.Is(err, resource.ErrHolding) {
			t.Errorf("%q: %v", amount, err)
		}
	}
	for _, chunk := range []string{``, `[`, `{}`, `[{"pid":1}]`, `[{"pid":1,"resource_id":"gpu","amount":1}]`} {
		if err := filled(t, 0).ledger.Restore([]byte(chunk)); err == nil {
			t.Errorf("%s: restored", chunk)
		}
	}
}

// FuzzRestore: a damaged snapshot is refused, or gives a state whose snapshot is the same.
func FuzzRestore(f *testing.F) {
	f.Add([]byte(`[{"pid":1,"resource_id":"gpu","amount":"0.25"},{"pid":2,"resource_id":"","amount":"3"}]`))
	f.Add([]byte(`[{"pid":0,"resource_id":"gpu","amount":"1e5"},{"pid":0,"resource_id":"gpu","amount":"1/3"}]`))
	f.Fuzz(func(t *testing.T, chunk []byte) {
		b := filled(t, 0)
		if b.ledger.Restore(chunk) != nil {
			return
		}
		state, again := domaintest.Snapshot(t, b.ledger), filled(t, 0)
		if err := b.ledger.Snapshot()(again.ledger.Restore); err != nil {
			t.Fatalf("restore %s: %v", state, err)
		}
		if !bytes.Equal(state, domaintest.Snapshot(t, again.ledger)) {
			t.Errorf("%s becomes %s", state, domaintest.Snapshot(t, again.ledger))
		}
	})
}
