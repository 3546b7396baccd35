package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
)

func newAuditMetrics(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "metrics",
		Short: "count calls and refusals, and show how long calls took",
		Long: `metrics counts the calls in the journal and their refusals (by capability or quota), in
all and by syscall, and shows how long the calls of each took: the median, and what 99
of 100 stayed below. A call is counted once, when it has ended, as "pwos audit log"
shows it; what the kernel does itself is in the log and not counted.`,
		Example: `  pwos audit metrics
  pwos audit metrics --json | jq .denied_by_code`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.auditMetrics(cmd.Context())
		},
	}
}

func (a *app) auditMetrics(ctx context.Context) error {
	const typ = "Audit.Metrics"
	return a.withKernel(ctx, usualTimeout, func(ctx context.Context, c *client.Client) error {
		data, err := invoke(ctx, c, typ, &schema.AuditMetricsInput{})
		if err != nil {
			return err
		}
		if a.wantsJSON() {
			return a.printLine(data)
		}
		m, err := answerAs[schema.AuditMetricsOutput](typ, data)
		if err != nil {
			return err
		}
		t := new(table)
		t.row("calls", fmt.Sprint(m.TotalCalls))
		t.row("refused", fmt.Sprint(m.DeniedCalls))
		t.row("took on average", brisk(time.Duration(m.AvgLatencyUS*float64(time.Microsecond))))
		if err := t.write(a.stdout); err != nil {
			return err
		}
		if err := a.printText(""); err != nil {
			return err
		}
		return metricsTable(&m).write(a.stdout)
	})
}

// metricsTable has a row a syscall. The counts go by CAP's code where there is one, the latencies by type.
func metricsTable(m *schema.AuditMetricsOutput) *table {
	typeOf := make(map[string]string)
	for _, row := range schema.Syscalls() {
		typeOf[row.Code] = row.Type
	}
	t := new(table)
	t.header("syscall", "calls", "refused", "p50", "p99")
	for _, code := range slices.Sorted(maps.Keys(m.ByCode)) {
		typ, ok := typeOf[code]
		if !ok {
			typ = code
		}
		p50, p99 := "-", "-"
		if took, ok := m.Latency[typ]; ok {
			p50, p99 = microseconds(took.P50US), microseconds(took.P99US)
		}
		t.row(escaped(code), fmt.Sprint(m.ByCode[code]), fmt.Sprint(m.DeniedByCode[code]), p50, p99)
	}
	return t
}

func microseconds(n int64) string { return (time.Duration(n) * time.Microsecond).String() }
