// Package metrics counts calls by syscall, with a histogram of their latencies (CAP section 6): a fold over the whole journal.
package metrics

import (
	"cmp"
	"math/bits"
	"sync"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Metrics are CAP section 6's, a fold over the whole journal: a start comes to the same numbers as the kernel before had.
type Metrics struct {
	mu   sync.Mutex
	all  *counts
	each map[string]*counts // what processes did, by origin: what an agent is shown

	list  []*typeCounts // of all and each, in the order in which they began
	taken uint64        // how many snapshots were taken
}

// MaxNames is how many registered syscalls are counted by their names, in all and of each origin. Calls of more are counted as Syscall.Invoke.
const MaxNames = 1000

// counts are the calls of each syscall, nil where there are none.
type counts struct {
	rows  []*typeCounts          // by the place of its row in the table
	named map[string]*typeCounts // of those that were registered
}

// typeCounts counts the calls of one syscall.
type typeCounts struct {
	name      string // its type, or the name under which it was registered
	code      string // CAP's, or the same
	origin    string // whose calls, where they are not everybody's
	own       bool
	total     int64
	denied    int64
	latency   int64 // sum, microseconds
	histogram histogram

	before *typeCounts // as the last snapshot has them, where they are others now
	taken  uint64      // snapshots that do not have them as they are
}

// New returns those of an empty journal.
func New() *Metrics {
	m := &Metrics{}
	m.Reset()
	return m
}

// Recall counts an entry of the journal.
func (m *Metrics) Recall(call *kernel.Call) { m.Count(call, 1) }

// Count adds an entry n times; -1 takes one back that was lost. A call is counted once, with its verdict: one that has an
// effect at its end. What the kernel does itself, a step of another call or a note, is not
// counted; an effect that it has in an agent's name is the agent's call.
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
	if row == nil || row.Internal && row.Outcome == "" { // with an outcome it is called in an agent's name
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

// of returns the counts of a syscall, or of what was registered under a name, of everybody's calls or of one origin's own, to be changed.
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
	if t.taken < m.taken { // the last snapshot may not have been written yet
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

// ShownTo is what Audit.Metrics answers a process: the operator sees all, an agent what the processes of its origin did (ABI
// 6.4).
func (m *Metrics) ShownTo(pid int64, origin string) *schema.AuditMetricsOutput {
	m.mu.Lock()
	defer m.mu.Unlock()
	if pid == kernel.Operator {
		return m.all.output()
	}
	return m.each[origin].output()
}

// output is what is shown of c; nil: of nothing.
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

// histogram counts values in buckets that grow with them: eight to each power of two, so that a quantile is right to
// within an eighth.
type histogram struct {
	buckets [8 * 40]int64
	total   int64
}

// add counts v n times.
func (h *histogram) add(v, n int64) {
	h.buckets[bucket(v)] += n
	h.total += n
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
