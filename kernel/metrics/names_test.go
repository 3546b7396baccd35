package metrics_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/metrics"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// ended is the end of a call of a registered syscall.
func ended(name, origin string) *kernel.Call {
	end := &schema.EffectEnd{Type: schema.SyscallInvoke.Type, Name: name, PID: 7}
	return &kernel.Call{Request: kernel.Request{Syscall: schema.SyscallInvoke.End.Syscall, Input: end}, Decision: kernel.Decision{Origin: origin}, Outcome: kernel.Outcome{Proof: schema.Proof{LatencyUS: 5}}}
}

// refused is a call of it that the gate refused.
func refused(name string) *kernel.Call {
	data := fmt.Appendf(nil, `{"name":%q,"kind":"query","data":null}`, name)
	return &kernel.Call{
		Request:  kernel.Request{Syscall: schema.SyscallInvoke.Row(), Message: schema.Message{Type: schema.SyscallInvoke.Type, Data: data}},
		Decision: kernel.Decision{PID: 7, Origin: "o"},
		Outcome:  kernel.Outcome{Err: fault.CapabilityDenied.New("no"), Proof: schema.Proof{LatencyUS: 5}},
	}
}

// TestNames: calls of registered syscalls are counted by name up to a bound, then together; after a restart too.
func TestNames(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	m.Recall(ended("Sum.Add", "o"))
	m.Recall(ended("mcp/fs/read", "o"))
	m.Recall(refused("Sum.Add"))
	m.Recall(&kernel.Call{Request: kernel.Request{Syscall: schema.MemorySet.Row()}, Decision: kernel.Decision{PID: 7, Origin: "o"}, Outcome: kernel.Outcome{Proof: schema.Proof{LatencyUS: 5}}})
	took := schema.LatencyQuant{P50US: 5, P99US: 5}
	want := &schema.AuditMetricsOutput{
		TotalCalls: 4, DeniedCalls: 1, AvgLatencyUS: 5,
		ByCode:       map[string]int64{"Sum.Add": 2, "mcp/fs/read": 1, "Memory.Set": 1},
		DeniedByCode: map[string]int64{"Sum.Add": 1},
		Latency:      map[string]schema.LatencyQuant{"Sum.Add": took, "mcp/fs/read": took, "Memory.Set": took},
	}
	if diff := cmp.Diff(want, m.ShownTo(7, "o")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i := range metrics.MaxNames {
		m.Recall(ended(fmt.Sprintf("Many.N%d", i), "o"))
	}
	m.Recall(ended("Sum.Add", "other"))
	for _, pid := range []int64{kernel.Operator, 7} {
		got := m.ShownTo(pid, "o")
		if n := len(got.ByCode); n != metrics.MaxNames+2 || got.ByCode["Syscall.Invoke"] != 2 || got.ByCode["Many.N0"] != 1 {
			t.Errorf("to pid %d: %d names, %d calls of others", pid, n, got.ByCode["Syscall.Invoke"])
		}
	}
	restored := metrics.New()
	if err := m.Snapshot()(restored.Restore); err != nil {
		t.Fatal(err)
	}
	m.Recall(ended("Late.One", "o"))
	restored.Recall(ended("Late.One", "o"))
	for _, pid := range []int64{kernel.Operator, 7} {
		if diff := cmp.Diff(m.ShownTo(pid, "o"), restored.ShownTo(pid, "o")); diff != "" {
			t.Errorf("restored, to pid %d (-want +got):\n%s", pid, diff)
		}
	}
}
