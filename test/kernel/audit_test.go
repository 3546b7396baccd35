package kernel_test

import (
	"encoding/json"
	"fmt"
	"testing"
)

// metrics are the answer of Audit.Metrics (CAP 6).
type metrics struct {
	TotalCalls   int64            `json:"total_calls"`
	DeniedCalls  int64            `json:"denied_calls"`
	ByCode       map[string]int64 `json:"by_code"`
	DeniedByCode map[string]int64 `json:"denied_by_code"`
	Avg          float64          `json:"avg_latency_us"`
	Latency      map[string]struct {
		P50 int64 `json:"p50_us"`
		P99 int64 `json:"p99_us"`
	} `json:"latency"`
}

func (c *client) metrics() (m metrics) {
	c.t.Helper()
	c.call("Audit.Metrics", `{}`, &m)
	return m
}

// entry is an entry of Audit.Log (CAP 4).
type entry struct {
	Success   bool   `json:"success"`
	Code      string `json:"syscall_code"`
	PID       int64  `json:"pid"`
	Tick      int64  `json:"tick"`
	Error     string `json:"error"`
	LatencyUS int64  `json:"latency_us"`
	Seq       int64  `json:"seq"`
	Type      string `json:"type"`
	ID        string `json:"id"`
}

func (c *client) fault(a answer) (f wireError) {
	c.t.Helper()
	if err := json.Unmarshal(a.Data, &f); err != nil || a.Kind != "error" {
		c.t.Fatalf("got %s %s, want an error", a.Kind, a.Data)
	}
	return f
}

// recorded looks up the answer's proof in the audit log, which must agree. The command before it makes the entry of a query
// durable, since the log shows only entries that cannot be lost.
func (c *client) recorded(row capRow, a answer, pid int64, message string) {
	c.t.Helper()
	k := a.Metadata.Kernel
	if k == nil || k.PID != pid || k.LatencyUS < 1 {
		c.t.Fatalf("%s: proof %+v, want one of pid %d with its latency", row.typ, k, pid)
	}
	c.call("Syscall.Echo", `{"message":"sync"}`, nil)
	var log struct {
		Entries []entry `json:"entries"`
	}
	c.call("Audit.Log", fmt.Sprintf(`{"pid":%d,"since_seq":%d,"limit":1}`, pid, k.Seq-1), &log)
	want := entry{
		Success: message == "", Code: row.code, PID: pid, Tick: k.Tick, Error: message, LatencyUS: k.LatencyUS,
		Seq: k.Seq, Type: row.typ, ID: a.Metadata.Causation,
	}
	if len(log.Entries) != 1 || log.Entries[0] != want {
		c.t.Fatalf("entry %d: got %+v, want %+v", k.Seq, log.Entries, want)
	}
}

// TestAuditVerify makes the kernel verify its own journal, which grows by one entry a call.
func TestAuditVerify(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	before := c.call("Syscall.Echo", `{"message":"a"}`, nil).Metadata.Kernel.Seq
	after := c.call("Syscall.Ping", `{"payload":1}`, nil).Metadata.Kernel.Seq
	if after <= before {
		t.Errorf("seq %d after %d", after, before)
	}
	var out struct {
		OK      bool   `json:"ok"`
		Entries int64  `json:"entries"`
		Head    string `json:"head"`
		Broken  string `json:"broken"`
	}
	c.call("Audit.Verify", `{}`, &out)
	if !out.OK || out.Entries < after || len(out.Head) != 64 || out.Broken != "" {
		t.Errorf("verify: %+v", out)
	}
}
