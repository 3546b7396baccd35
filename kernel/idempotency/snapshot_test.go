package idempotency_test

import (
	"strconv"
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/schema"
)

// recallKey records the n-th command of a journal.
func recallKey(t testing.TB, keys *idempotency.Keys, n int) {
	t.Helper()
	call := &kernel.Call{Request: kernel.Request{Syscall: schema.MemorySet.Row()}, Decision: kernel.Decision{PID: 7, Moment: kernel.Moment{Time: int64(n)}}, Outcome: kernel.Outcome{Data: []byte(`{"success":true}`)}}
	call.Message.Type, call.Message.Data = call.Syscall.Type, []byte(`{"key":"a","value":1}`)
	call.Message.Meta.IdempotencyKey = strconv.Itoa(n)
	call.Proof.Seq = uint64(n)
	in, err := call.Syscall.Input().Decode(call.Message.Data)
	if err != nil {
		t.Fatal(err)
	}
	call.Input = in
	keys.Recall(call)
}

// TestKeySnapshotTakesNoTime: the actor allocates no more for many keys than for few; the writer copies them on its
// goroutine. The snapshot lacks keys that were used later.
func TestKeySnapshotTakesNoTime(t *testing.T) {
	cost := func(n int) float64 {
		keys := idempotency.New()
		for i := range n {
			recallKey(t, keys, i+1)
		}
		allocs := testing.AllocsPerRun(10, func() { keys.Snapshot() })
		write, chunks := keys.Snapshot(), 0
		recallKey(t, keys, n+1)
		restored := idempotency.New()
		if err := write(func(chunk []byte) error {
			chunks++
			return restored.Restore(chunk)
		}); err != nil || chunks != n {
			t.Errorf("snapshot of %d keys: %d chunks, %v", n, chunks, err)
		}
		return allocs
	}
	if few, many := cost(3), cost(5000); many > few {
		t.Errorf("a snapshot allocates %v times for 3 keys and %v times for 5000", few, many)
	}
}
