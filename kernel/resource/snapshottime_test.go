package resource_test

import (
	"bytes"
	"testing"

	"github.com/promptware-os/pwos/kernel/domaintest"
)

// TestSnapshotTakesNoTime: a snapshot allocates as little for many holders as for few, and shows what was held when it was taken.
func TestSnapshotTakesNoTime(t *testing.T) {
	cost := func(holders int64) float64 {
		l := newLedger(t, map[string]float64{"a": 1e9}, tokens{})
		hold := func(typ string) {
			for pid := int64(1); pid <= holders; pid++ {
				call := request(t, pid, typ, `{"resource_id":"a","amount":2}`)
				call.Data = []byte(`{}`)
				l.Apply(call)
			}
		}
		hold("Syscall.Alloc")
		allocs := testing.AllocsPerRun(10, func() { l.Snapshot() })
		want, write := domaintest.Snapshot(t, l), l.Snapshot()
		hold("Syscall.Alloc")
		hold("Syscall.Release")
		hold("Syscall.Release")
		var got []byte
		if err := write(func(chunk []byte) error {
			got = append(got, chunk...)
			return nil
		}); err != nil || !bytes.Equal(want, got) {
			t.Errorf("%d holders: %v, the snapshot has %.100s, want %.100s", holders, err, got, want)
		}
		if left := l.Holders(); len(left) != 0 {
			t.Errorf("%d holders are left", len(left))
		}
		return allocs
	}
	if few, many := cost(3), cost(5000); many > few {
		t.Errorf("a snapshot allocates %v times for 3 holders and %v times for 5000", few, many)
	}
}
