package view

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Entry is an entry of the audit log, with the JSON that it came as.
type Entry struct {
	schema.AuditEntry

	Raw schema.Value
}

// Cells are the entry for people: its number, time and caller, the call, its latency, and its outcome.
func (e *Entry) Cells(style Paint) []string {
	result := style(Good, "ok")
	switch {
	case e.Status == schema.StatusRunning:
		result = style(Faint, "running")
	case e.Status == schema.StatusUnknown && e.Error == "":
		result = style(Bad, "unknown: it ended, and that could not be recorded")
	case !e.Success:
		result = style(Bad, Escaped(string(e.Error)))
		if Exceptable(fault.ID(e.ErrorID)) {
			result += style(Faint, ", see "+Exception(e.Seq))
		}
	}
	return []string{
		strconv.FormatInt(e.Seq, 10),
		time.UnixMilli(e.Time).Format("2006-01-02 15:04:05.000"),
		strconv.FormatInt(e.PID, 10),
		e.Type,
		microseconds(e.LatencyUS),
		result,
	}
}

// MetricsTable has a row a syscall. Counts are by CAP's code if there is one, latencies by type.
func MetricsTable(m *schema.AuditMetricsOutput) *Table {
	typeOf := make(map[string]string)
	for _, row := range schema.Syscalls() {
		typeOf[row.Code] = row.Type
	}
	t := new(Table)
	t.Header("syscall", "calls", "refused", "p50", "p99")
	for _, code := range slices.Sorted(maps.Keys(m.ByCode)) {
		typ, ok := typeOf[code]
		if !ok {
			typ = code
		}
		p50, p99 := "-", "-"
		if took, ok := m.Latency[typ]; ok {
			p50, p99 = microseconds(took.P50US), microseconds(took.P99US)
		}
		t.Row(Escaped(code), fmt.Sprint(m.ByCode[code]), fmt.Sprint(m.DeniedByCode[code]), p50, p99)
	}
	return t
}

// Exceptable reports whether an exception to a rule would let a call through that failed with this id.
func Exceptable(id fault.ID) bool { return id == fault.PolicyDenied || id == fault.PolicyAsks }

// Exception is the command that adds the narrowest exception for the call of an entry.
func Exception(seq int64) string { return fmt.Sprintf(`"pwos policy allow --from %d"`, seq) }

// Internal reports whether entries of the type are the kernel's own, which no agent asked for. An effect that the
// kernel has for an agent, such as Net.Connect, is the agent's call.
func Internal(typ string) bool {
	row, ok := schema.Lookup(typ)
	return ok && row.Internal && row.Outcome == ""
}

// Refusal reports whether an error code means that the caller may not, rather than that it cannot be done: a denial
// (CAP 6).
func Refusal(code int64) bool {
	return (&fault.Fault{Kind: fault.KindOf(int(code))}).Denied()
}
