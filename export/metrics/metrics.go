// Package metrics exports a kernel's counters to Prometheus.
//
// Each scrape queries the kernel, whose counters are over its whole journal: a restart of the exporter loses nothing,
// and nothing is counted twice. No series has a process as a label: the number of series depends on the used syscalls,
// which the kernel bounds.
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
	calls      = desc("calls_total", "Calls that have ended, over the whole journal, by syscall.", "type")
	denied     = desc("calls_denied_total", "Calls that were refused by capability or quota, over the whole journal, by syscall.", "type")
	median     = desc("call_latency_median_seconds", "Median time of calls, exact to an eighth, over the whole journal, by syscall.", "type")
	p99        = desc("call_latency_p99_seconds", "99th percentile of the time of calls, exact to an eighth, over the whole journal, by syscall.", "type")
	entries    = desc("journal_entries_total", "Entries in the journal.")
	processes  = desc("processes", "Processes, by state.", "state")
	approvals  = desc("approvals_waiting", "Calls that wait for an approval.")
	refusing   = desc("journal_refusing", "Whether commands are refused because the journal cannot be written.")
	warnings   = desc("warnings", "Problems that need the operator; pwos status lists them.")
	given      = desc("budget_given", "Budgets that the operator gave to living processes, by unit.", "unit")
	spent      = desc("budget_spent", "Amounts of these budgets that were spent, by unit.", "unit")
	reserved   = desc("budget_reserved", "Amounts of these budgets that are reserved for calls in flight, by unit.", "unit")
	remaining  = desc("budget_left", "Amounts of these budgets that are left, by unit.", "unit")
	allMetrics = []*prometheus.Desc{
		up, build, calls, denied, median, p99, entries, processes, approvals, refusing, warnings, given, spent, reserved, remaining,
	}
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("pwos_"+name, help, labels, nil)
}

// collector has the answers of one scrape; nil: the kernel did not answer.
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

// Collect implements prometheus.Collector. A kernel that did not answer has only the metrics up and build_info.
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

// counts sends counters by syscall, with CAP's codes as the types that they stand for.
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

// budgets sums up the budgets that the operator gave, each with the amounts that were given to children.
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

// answers are a kernel's answers of one scrape.
type answers struct {
	metrics   *schema.AuditMetricsOutput
	seq       int64 // entry of that answer
	processes []schema.Descriptor
	approvals int64
	budgets   []schema.BudgetState
}

// fetch queries a kernel for answers.
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
