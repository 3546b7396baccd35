// Package metrics counts calls by syscall, with a histogram of their latencies (CAP section 6): a fold over the whole journal.
package metrics

import (
	"cmp"
	"math/bits"
	"sync"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Metrics are the counters of CAP section 6, a fold over the whole journal: a restart comes to the same numbers.
type Metrics struct {
	mu   sync.Mutex
	all  *counts
	each map[string]*counts // calls of processes, by origin: what an agent sees

	list  []*typeCounts // all of the above, in the order of their creation
	taken uint64        // number of snapshots taken
}

// MaxNames bounds the registered syscalls that are counted by name, in total and for each origin.
// Calls of others count as Syscall.Invoke.
const MaxNames = 1000

// counts are the counters of each syscall, nil if it has none.
type counts struct {
	rows  []*typeCounts          // by the index of its row in the table
	named map[string]*typeCounts // of registered syscalls
}

// typeCounts counts the calls of one syscall.
type typeCounts struct {
	name      string // its type, or the registered name
	code      string // CAP's, or the same
	origin    string // of the callers; empty: all
	own       bool
	total     int64
	denied    int64
	latency   int64 // sum, microseconds
	histogram histogram

	before *typeCounts // the counters in the last snapshot, if they have changed since; else nil
	taken  uint64      // number of snapshots that they were copied for
}

// New returns the metrics of an empty journal.
func New() *Metrics {
	m := &Metrics{}
	m.Reset()
	return m
}

// Recall counts an entry of the journal.
func (m *Metrics) Recall(call *kernel.Call) { m.Count(call, 1) }

// Count counts an entry n times; -1 removes one that was lost. A call is counted once, with its verdict: a call with
// an effect at its end. Steps and notes of the kernel itself are not counted; an effect that it has for an agent is
// the agent's call.
func (m *Metrics) Count(call *kernel.Call, n int64) {
	row, pid, name := call.Syscall, call.PID, ""
	if end, ok := call.Input.(*schema.EffectEnd); ok && row.Ends() {
		row, _ = schema.Lookup(end.Type)
		pid, name = end.PID, end.Name
	} else if call.Intends() {
		return
	} else if row == schema.SyscallInvoke.Row() {
		name = call.Message.Called()
	}
	if row == nil || row.Internal && row.Outcome == "" { // with an outcome it is called for an agent
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(row, name, "", false).add(call, n)
	if pid != kernel.Operator {
		m.of(row, name, call.Origin, true).add(call, n)
	}
}

func newCounts() *counts {
	return &counts{make([]*typeCounts, len(schema.Syscalls())), make(map[string]*typeCounts)}
}

// of returns the counters to change: of a syscall or a registered name, for all calls or for those of one origin.
func (m *Metrics) of(row *schema.Syscall, name, origin string, own bool) *typeCounts {
	c := m.all
	if own {
		if c = m.each[origin]; c == nil {
			c = newCounts()
			m.each[origin] = c
		}
	}
	t := c.named[name]
	byRow := t == nil && (name == "" || len(c.named) == MaxNames)
	if byRow {
		t = c.rows[row.Index()]
	}
	if t == nil {
		t = &typeCounts{name: name, code: name, origin: origin, own: own, taken: m.taken}
		if byRow {
			t.name, t.code = row.Type, cmp.Or(row.Code, row.Type)
			c.rows[row.Index()] = t
		} else {
			c.named[name] = t
		}
		m.list = append(m.list, t)
	}
	if t.taken < m.taken { // the last snapshot may not be written yet
		before := *t
		t.before, t.taken = &before, m.taken
	}
	return t
}

func (t *typeCounts) add(call *kernel.Call, n int64) {
	t.total += n
	t.latency += n * call.Proof.LatencyUS
	t.histogram.add(call.Proof.LatencyUS, n)
	if call.Err != nil && call.Err.Denied() {
		t.denied += n
	}
}

// ShownTo is the answer of Audit.Metrics for a process: the operator sees all, an agent the calls of its origin (ABI
// 6.4).
func (m *Metrics) ShownTo(pid int64, origin string) *schema.AuditMetricsOutput {
	m.mu.Lock()
	defer m.mu.Unlock()
	if pid == kernel.Operator {
		return m.all.output()
	}
	return m.each[origin].output()
}

// output is c as an answer shows it; nil: empty.
func (c *counts) output() *schema.AuditMetricsOutput {
	out := &schema.AuditMetricsOutput{
		ByCode: make(map[string]int64), DeniedByCode: make(map[string]int64), Latency: make(map[string]schema.LatencyQuant),
	}
	var latency int64
	add := func(t *typeCounts) {
		if t == nil || t.total == 0 {
			return
		}
		out.TotalCalls += t.total
		out.DeniedCalls += t.denied
		latency += t.latency
		out.ByCode[t.code] += t.total
		if t.denied > 0 {
			out.DeniedByCode[t.code] += t.denied
		}
		out.Latency[t.name] = schema.LatencyQuant{P50US: t.histogram.quantile(0.50), P99US: t.histogram.quantile(0.99)}
	}
	if c != nil {
		for _, t := range c.rows {
			add(t)
		}
		for _, t := range c.named {
			add(t)
		}
	}
	if out.TotalCalls > 0 {
		out.AvgLatencyUS = float64(latency) / float64(out.TotalCalls)
	}
	return out
}

// histogram counts values in exponential buckets, eight for each power of two, so that a quantile is exact to an
// eighth.
type histogram struct {
	buckets [8 * 40]int64
	total   int64
}

// add counts v n times.
func (h *histogram) add(v, n int64) {
	h.buckets[bucket(v)] += n
	h.total += n
}

// quantile returns the upper bound of the bucket with the q-quantile, 0 if there are no values.
func (h *histogram) quantile(q float64) int64 {
	rank := int64(q * float64(h.total))
	for i, n := range h.buckets {
		if rank -= n; rank < 0 {
			return upper(i)
		}
	}
	return 0
}

// bucket is the index for v: its highest bit and the three bits after it.
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
