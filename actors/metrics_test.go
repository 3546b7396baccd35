package actors_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// askMetrics queries the metrics, and returns them.
func askMetrics(t *testing.T, c *client) schema.AuditMetricsOutput {
	t.Helper()
	c.send(query("metrics", "Audit.Metrics", "{}"))
	synctest.Wait()
	got := c.pending()
	if len(got) != 1 || got[0].Kind != schema.KindReply {
		t.Fatalf("answers %v", show(got))
	}
	var out schema.AuditMetricsOutput
	if err := json.Unmarshal(got[0].Data, &out); err != nil {
		t.Fatalf("metrics %s: %v", got[0].Data, err)
	}
	return out
}

// startTimed starts recorders whose memory takes as long for a command as its key says, in microseconds of a clock that only
// the test advances.
func startTimed(t *testing.T) *system {
	t.Helper()
	states := newRecorders()
	states[schema.Memory].decide = func(call *kernel.Call, applied []string) (kernel.Result, bool, error) {
		if in, ok := call.Input.(*schema.MemorySetInput); ok {
			var took time.Duration
			if _, err := fmt.Sscan(in.Key, &took); err == nil {
				time.Sleep(took * time.Microsecond)
			}
		}
		return refusing(call, applied)
	}
	return startWith(t, states.domains())
}

// TestMetrics shows what is counted: every call once, by its code if it has one, with refusals by capability and quota
// separate from other errors. A query does not count itself.
func TestMetrics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startTimed(t)
		s.tokens.held = map[int64]*kernel.Token{}
		c, agent := s.connect(), s.serveAs(newLink(schema.OsMessage, schema.MaxLine, unbounded), 7)
		c.send(set("a", "10"), set("b", "30"), get("c"), spawn("d", "x"), set("e", "bad"), set("f", "409"), set("g", "429"))
		c.send("no JSON", query("h", "Nobody.Knows", "{}"))
		agent.send(set("i", "x"), spawn("j", "x"))
		checkCauses(t, []string{"a", "b", "c", "d", "e", "f", "g", "", "h"}, c.take(9))
		checkCauses(t, []string{"i", "j"}, agent.take(2))
		want := schema.AuditMetricsOutput{
			TotalCalls: 9, DeniedCalls: 3,
			ByCode:       map[string]int64{"Memory.Set": 6, "Memory.Get": 1, "SYS_SPAWN": 2},
			DeniedByCode: map[string]int64{"Memory.Set": 2, "SYS_SPAWN": 1},
		}
		ignored := cmpopts.IgnoreFields(schema.AuditMetricsOutput{}, "AvgLatencyUS", "Latency")
		if diff := cmp.Diff(want, askMetrics(t, c), ignored); diff != "" {
			t.Errorf("metrics (-want +got):\n%s", diff)
		}
		if again := askMetrics(t, c); again.TotalCalls != 10 || again.ByCode["Audit.Metrics"] != 1 {
			t.Errorf("metrics after a query of them: %+v", again)
		}
	})
}

// TestMeanLatency shows that the mean is of all calls, in microseconds, and that time spent waiting for the disk is not
// included.
func TestMeanLatency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startTimed(t)
		c := s.connect()
		if m := askMetrics(t, c); m.AvgLatencyUS != 0 || m.TotalCalls != 0 {
			t.Errorf("metrics of nothing: %+v", m)
		}
		gate := s.holdSyncs()
		c.send(set("a", "100"), set("b", "200"), set("c", "600"))
		time.Sleep(time.Second)
		gate.open()
		expect(t, c, "a 1", "b 2", "c 3")
		m := askMetrics(t, c)
		if sum := m.AvgLatencyUS * float64(m.TotalCalls); sum < 900 || sum > 910 {
			t.Errorf("mean %v of %d calls, want 900 µs in all", m.AvgLatencyUS, m.TotalCalls)
		}
	})
}

// TestQuantiles shows that a quantile is accurate to an eighth for any latencies.
func TestQuantiles(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		latencies []int64
		p50, p99  int64
	}{
		{"tiny", []int64{1, 2, 3}, 2, 3},
		{"the least of a power of two", []int64{1024, 1024, 1024}, 1024, 1024},
		{"the most of a power of two", []int64{2047, 2047, 2047}, 2047, 2047},
		{"in between", []int64{1100, 1100, 1100}, 1100, 1100},
		{"a quarter up", []int64{1280, 1280, 1280}, 1280, 1280},
		{"small and large", []int64{10, 20, 40, 3_000_000, 60_000_000}, 40, 60_000_000},
		{"one outlier", append(repeat(100, 50), 1_000_000), 100, 1_000_000},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			switch test.name {
			case "the least of a power of two", "in between", "a quarter up", "small and large":
			}
			synctest.Test(t, func(t *testing.T) {
				s := startTimed(t)
				c := s.connect()
				for i, us := range test.latencies {
					c.send(set("a", fmt.Sprint(us)))
					if a := c.next(); a.Kind != schema.KindReply {
						t.Fatalf("call %d: %s", i, a)
					}
				}
				got := askMetrics(t, c).Latency["Memory.Set"]
				within(t, "p50", got.P50US, test.p50)
				within(t, "p99", got.P99US, test.p99)
			})
		})
	}
}

func repeat(us int64, n int) []int64 {
	list := make([]int64, n)
	for i := range list {
		list[i] = us
	}
	return list
}

func within(t *testing.T, name string, got, want int64) {
	t.Helper()
	if d := got - want; 8*max(d, -d) > want {
		t.Errorf("%s is %d, want %d to within an eighth", name, got, want)
	}
}
