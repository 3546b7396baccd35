package metrics_test

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/metrics"
	"github.com/promptware-os/pwos/schema"
)

// countFrom counts one call from each of that many origins.
func countFrom(m *metrics.Metrics, origins int) {
	for i := range origins {
		m.Recall(&kernel.Call{Request: kernel.Request{Syscall: schema.MemorySet.Row()}, Decision: kernel.Decision{PID: 7, Origin: strconv.Itoa(i)}, Outcome: kernel.Outcome{Proof: schema.Proof{LatencyUS: int64(i)}}})
	}
}

// TestMetricsSnapshotTakesNoTime: the actor allocates no more for many origins than for few. A snapshot lacks calls
// that are counted before it is written; only the latest one can be written.
func TestMetricsSnapshotTakesNoTime(t *testing.T) {
	cost := func(origins int) float64 {
		m := metrics.New()
		countFrom(m, origins)
		allocs := testing.AllocsPerRun(10, func() { m.Snapshot() })
		stale := m.Snapshot()
		for range 2 { // each snapshot has copies of its own
			want := m.ShownTo(kernel.Operator, "")
			write, restored := m.Snapshot(), metrics.New()
			countFrom(m, origins+1)
			if err := write(restored.Restore); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(want, restored.ShownTo(kernel.Operator, "")); diff != "" {
				t.Errorf("metrics when the snapshot was taken (-want +got):\n%s", diff)
			}
		}
		if err := stale(func([]byte) error { return nil }); err == nil {
			t.Error("a snapshot before the last was written")
		}
		return allocs
	}
	if few, many := cost(3), cost(2000); many > few {
		t.Errorf("a snapshot allocates %v times for 3 origins and %v times for 2000", few, many)
	}
}
