// Package metrics shows a kernel's counters to Prometheus.
//
// Each scrape asks the kernel, as any client does, so nothing is counted twice, and a restart of the exporter loses nothing: the
// kernel's own counters are over its whole record. No series has a process as a label: the number of series depends on the
// syscalls that were used, which the kernel bounds.
package metrics

import (
	"context"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
)

var (
	up         = desc("up", "Whether the kernel answered this scrape.")
	build      = desc("build_info", "Version of pwos metrics; always 1.", "version")
	calls      = desc("calls_total", "Calls that have ended, over the whole record, by syscall.", "type")
	denied     = desc("calls_denied_total", "Calls that were refused by capability or quota, over the whole record, by syscall.", "type")
	median     = desc("call_latency_median_seconds", "Half of the calls took no longer, exact to an eighth, over the whole record, by syscall.", "type")
	p99        = desc("call_latency_p99_seconds", "99 of 100 calls took no longer, exact to an eighth, over the whole record, by syscall.", "type")
	entries    = desc("journal_entries_total", "Entries in the journal.")
	processes  = desc("processes", "Processes, by state.", "state")
	approvals  = desc("approvals_waiting", "Calls that wait for an approval.")
	refusing   = desc("journal_refusing", "Whether the journal cannot be written, so that commands are refused.")
	warnings   = desc("warnings", "Problems that need the operator; pwos status lists them.")
	given      = desc("budget_given", "What living processes were given from the operator, by unit.", "unit")
	spent      = desc("budget_spent", "What they and their children have spent of it, by unit.", "unit")
	reserved   = desc("budget_reserved", "What is reserved for calls in flight, by unit.", "unit")
	remaining  = desc("budget_left", "What is left to them and to their children, by unit.", "unit")
	allMetrics = []*prometheus.Desc{
		up, build, calls, denied, median, p99, entries, processes, approvals, refusing, warnings, given, spent, reserved, remaining,
	}
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("pwos_"+name, help, labels, nil)
}

// collector is the answers of one scrape; nil: the kernel is away.
type collector struct {
	version string
	answers *answers
}

// Describe implements prometheus.Collector.
func (*collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range allMetrics {
		to <- d
	}
}

// Collect implements prometheus.Collector. A kernel that is away has the metrics up and build_info only.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	s := sample{to: to}
	s.gauge(build, 1, c.version)
	if c.answers == nil {
		s.gauge(up, 0)
		return
	}
	s.gauge(up, 1)
	s.record(c.answers)
	s.budgets(c.answers.budgets)
}

// sample sends the metrics of one scrape.
type sample struct{ to chan<- prometheus.Metric }

func (s *sample) gauge(d *prometheus.Desc, v float64, labels ...string) {
	s.to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (s *sample) counter(d *prometheus.Desc, v float64, labels ...string) {
	s.to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
}

func (s *sample) record(a *answers) {
	s.counter(entries, float64(a.seq))
	s.counts(calls, a.metrics.ByCode)
	s.counts(denied, a.metrics.DeniedByCode)
	for typ, l := range a.metrics.Latency {
		s.gauge(median, float64(l.P50US)/1e6, typ)
		s.gauge(p99, float64(l.P99US)/1e6, typ)
	}
	states := map[string]int{"CREATED": 0, "READY": 0, "RUNNING": 0, "BLOCKED": 0, "TERMINATED": 0} // CAP 3
	for i := range a.processes {
		states[a.processes[i].State]++
	}
	for state, n := range states {
		s.gauge(processes, float64(n), state)
	}
	s.gauge(approvals, float64(a.approvals))
	s.gauge(warnings, float64(len(a.metrics.Warnings)))
	isRefusing := 0.0
	if a.metrics.Refusing != "" {
		isRefusing = 1
	}
	s.gauge(refusing, isRefusing)
}

// counts shows counters by syscall. CAP's codes are shown as the types that they stand for.
func (s *sample) counts(d *prometheus.Desc, by map[string]int64) {
	types := make(map[string]int64, len(by))
	for code, n := range by {
		types[typeOf(code)] += n
	}
	for typ, n := range types {
		s.counter(d, float64(n), typ)
	}
}

func typeOf(code string) string {
	for _, row := range schema.Syscalls() {
		if row.Code == code {
			return row.Type
		}
	}
	return code
}

// budgets sums up the budgets that the operator gave, each with all that was given on from it.
func (s *sample) budgets(all []schema.BudgetState) {
	type sum struct{ given, spent, reserved, left float64 }
	units := make(map[string]sum)
	for i := range all {
		b := &all[i]
		for unit, line := range map[string]*schema.BudgetLine{"calls": b.Calls, "fetches": b.Fetches, "tokens": b.Tokens, "usd": b.USD} {
			if line == nil {
				continue
			}
			of := units[unit]
			if b.ParentPID == 0 {
				of.given += line.Given.Float()
			}
			of.spent += line.Spent.Float()
			of.reserved += line.Reserved.Float()
			of.left += line.Left.Float()
			units[unit] = of
		}
	}
	for _, unit := range slices.Sorted(maps.Keys(units)) {
		of := units[unit]
		s.gauge(given, of.given, unit)
		s.gauge(spent, of.spent, unit)
		s.gauge(reserved, of.reserved, unit)
		s.gauge(remaining, of.left, unit)
	}
}

// answers are what a kernel said at one scrape.
type answers struct {
	metrics   *schema.AuditMetricsOutput
	seq       int64 // of the entry of that answer
	processes []schema.Descriptor
	approvals int64
	budgets   []schema.BudgetState
}

// fetch asks a kernel for all of them.
func fetch(ctx context.Context, c *client.Client) (*answers, error) {
	counted, err := c.Call(ctx, schema.KindQuery, schema.AuditMetrics.Type, []byte("{}"))
	if err != nil {
		return nil, err
	}
	a := &answers{seq: client.SeqOf(&counted)}
	if a.metrics, err = schema.AuditMetrics.Decode(counted.Data); err != nil {
		return nil, err
	}
	listed, err := client.Call(ctx, c, schema.ProcessList, &schema.ProcessListInput{})
	if err != nil {
		return nil, err
	}
	waiting := "waiting"
	asked, err := client.Call(ctx, c, schema.ApprovalList, &schema.ApprovalListInput{State: &waiting})
	if err != nil {
		return nil, err
	}
	budgets, err := client.Call(ctx, c, schema.BudgetShow, &schema.BudgetShowInput{})
	if err != nil {
		return nil, err
	}
	a.processes, a.approvals, a.budgets = listed.Processes, int64(len(asked.Approvals))+asked.More, budgets.Budgets
	return a, nil
}
