package actors

import (
	"math/bits"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// metrics are CAP section 6's, since the kernel started. They belong to the audit actor.
type metrics struct {
	total   int64
	denied  int64
	latency int64 // sum, microseconds
	byType  map[string]*typeMetrics
	origins map[string]*metrics // what processes did, by origin: what an agent is shown; nil in one of these itself
}

// typeMetrics counts the calls of one syscall.
type typeMetrics struct {
	row       *schema.Syscall
	total     int64
	denied    int64
	histogram histogram
}

func newMetrics() *metrics {
	return &metrics{byType: make(map[string]*typeMetrics), origins: make(map[string]*metrics)}
}

// shownTo is the part that a call may see: the operator sees all, an agent what the processes of its origin did (ABI 6.4).
func (m *metrics) shownTo(call *kernel.Call) *metrics {
	if call.PID == kernel.Operator {
		return m
	}
	return m.of(call.Origin)
}

func (m *metrics) of(origin string) *metrics {
	own := m.origins[origin]
	if own == nil {
		own = &metrics{byType: make(map[string]*typeMetrics)}
		m.origins[origin] = own
	}
	return own
}

// count adds a finished call, unless it is the kernel's own, a step of another or a note: nobody made that. What the kernel calls in
// an agent's name is the agent's. A denial is a
// capability's or a quota's refusal (CAP 6).
func (m *metrics) count(call *kernel.Call) {
	if call.Syscall.Internal && !call.Caller.Kernel {
		return
	}
	if m.origins != nil && call.PID != kernel.Operator {
		m.of(call.Origin).count(call)
	}
	t := m.byType[call.Syscall.Type]
	if t == nil {
		t = &typeMetrics{row: call.Syscall}
		m.byType[call.Syscall.Type] = t
	}
	m.total++
	t.total++
	m.latency += call.Proof.LatencyUS
	t.histogram.add(call.Proof.LatencyUS)
	if call.Err != nil && (call.Err.Class == schema.Forbidden || call.Err.Class == schema.QuotaExceeded) {
		m.denied++
		t.denied++
	}
}

// output is what Audit.Metrics answers.
func (m *metrics) output() *schema.AuditMetricsOutput {
	out := &schema.AuditMetricsOutput{
		TotalCalls: m.total, DeniedCalls: m.denied,
		ByCode: make(map[string]int64), DeniedByCode: make(map[string]int64), Latency: make(map[string]schema.LatencyQuant),
	}
	if m.total > 0 {
		out.AvgLatencyUS = float64(m.latency) / float64(m.total)
	}
	for typ, t := range m.byType {
		code := t.row.Code
		if code == "" {
			code = typ
		}
		out.ByCode[code] += t.total
		if t.denied > 0 {
			out.DeniedByCode[code] += t.denied
		}
		out.Latency[typ] = schema.LatencyQuant{P50US: t.histogram.quantile(0.50), P99US: t.histogram.quantile(0.99)}
	}
	return out
}

// histogram counts values in buckets that grow with them: eight to each power of two, so that a quantile is right to
// within an eighth.
type histogram struct {
	buckets [8 * 40]int64
	total   int64
}

func (h *histogram) add(v int64) {
	h.buckets[bucket(v)]++
	h.total++
}

// quantile returns the upper bound of the bucket that holds the q-th part of the values, 0 where there are none.
func (h *histogram) quantile(q float64) int64 {
	rank := int64(q * float64(h.total))
	for i, n := range h.buckets {
		if rank -= n; rank < 0 {
			return upper(i)
		}
	}
	return 0
}

// bucket is the index for v: its highest bit, and the three bits after it.
func bucket(v int64) int {
	if v < 8 {
		return int(max(v, 0))
	}
	high := bits.Len64(uint64(v)) - 1
	i := 8*(high-2) + int(v>>(high-3))&7
	return min(i, 8*40-1)
}

// upper is the largest value of a bucket.
func upper(i int) int64 {
	if i < 8 {
		return int64(i)
	}
	high := i/8 + 2
	return (int64(8+i%8)+1)<<(high-3) - 1
}
