package view

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Entry is an entry of the audit log, with its original JSON.
type Entry struct {
	schema.AuditEntry

	Raw schema.Value
}

// EntryHeader names the cells of an entry.
func EntryHeader() []string { return []string{"seq", "time", "who", "call"} }

// Cells returns the entry's cells for people: its number, time, caller, action and outcome.
func (e *Entry) Cells(names Names, style Paint) []string {
	return []string{strconv.FormatInt(e.Seq, 10), Moment(e.Time), e.who(names), e.Line(names, style)}
}

// who returns the caller's PID and name.
func (e *Entry) who(names Names) string {
	if Internal(e.Type) {
		return "kernel"
	}
	return fmt.Sprint(e.PID, " ", names.Of(e.PID))
}

// Line describes the call and its outcome: "Http.Fetch GET https://example.com → 200, 29 B".
func (e *Entry) Line(names Names, style Paint) string {
	line := style(Bold, Escaped(e.Type))
	if asked := e.asked(names); asked != "" {
		line += " " + asked
	}
	if outcome := e.outcome(names, style); outcome != "" {
		line += " → " + outcome
	}
	return line
}

// Parts returns the parts of a line: what the call was about, and its outcome. It is for a front end that shows the
// verdict by other means.
func (e *Entry) Parts(names Names) (about, came string) {
	about = e.asked(names)
	if e.Success || e.Error == "" {
		return about, e.outcome(names, Plain)
	}
	came = Escaped(string(e.Error))
	if advice := e.Advice(); advice != "" {
		came += "; " + advice
	}
	return about, came
}

// Plain is a Paint that leaves text as it is.
func Plain(_ Look, text string) string { return text }

// outcome returns the outcome of the call in words; "" if a success needs none.
func (e *Entry) outcome(names Names, style Paint) string {
	switch {
	case e.Status == schema.StatusRunning:
		return style(Faint, "running")
	case e.Status == schema.StatusUnknown && e.Error == "":
		return style(Bad, "unknown: its end could not be recorded")
	case e.Success:
		return e.answered(names)
	}
	verdict := Escaped(e.Status)
	if e.ErrorID != "" {
		verdict += " (" + Escaped(e.ErrorID) + ")"
	}
	text := style(Bad, verdict+": "+Escaped(string(e.Error)))
	if advice := e.Advice(); advice != "" {
		text += style(Faint, "; "+advice)
	}
	return text
}

// Advice returns what to do about a refusal whose message does not name a command; "" if there is nothing to add.
func (e *Entry) Advice() string {
	id := fault.ID(e.ErrorID)
	if Exceptable(id) {
		return Exception(e.Seq) + " shows what would let it through"
	}
	if e.Status != schema.StatusDenied || strings.Contains(string(e.Error), `"pwos `) {
		return ""
	}
	known, _ := fault.Lookup(id)
	return lowered(strings.TrimSuffix(known.Fix, "."))
}

// lowered returns text with a lower-case first letter, unless its first word is a name.
func lowered(text string) string {
	word, _, _ := strings.Cut(text, " ")
	if word == "" || strings.Contains(word, ".") {
		return text
	}
	return strings.ToLower(text[:1]) + text[1:]
}

// MetricsTable has one row for each syscall. Counts are by CAP's code if there is one, latencies by
// type.
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

// Exceptable reports whether an exception to a rule would allow a call that failed with this id.
func Exceptable(id fault.ID) bool { return id == fault.PolicyDenied || id == fault.PolicyAsks }

// Exception returns the command that adds the narrowest exception for the call of an entry.
func Exception(seq int64) string { return fmt.Sprintf(`"pwos policy allow --from %d"`, seq) }

// Internal reports whether entries of the type are the kernel's own, which no agent asked for. An effect of the
// kernel for an agent, such as Net.Connect, is the agent's call.
func Internal(typ string) bool {
	row, ok := schema.Lookup(typ)
	return ok && row.Internal && row.Outcome == ""
}

// OperatorQuery reports whether the entry is a query by the operator.
func OperatorQuery(e *schema.AuditEntry) bool {
	row, ok := schema.Lookup(e.Type)
	return ok && e.PID == 0 && row.Kind == schema.KindQuery
}

// Refusal reports whether an error code means that the caller may not, rather than that it cannot be done: a denial
// (CAP 6).
func Refusal(code int64) bool {
	return (&fault.Fault{Kind: fault.KindOf(int(code))}).Denied()
}

// ArchiveTable says what an Audit.Archive has moved out of the journal in a directory, and how to check it.
func ArchiveTable(out *schema.AuditArchiveOutput, journal string) *Table {
	t := new(Table)
	t.Row("moved", fmt.Sprintf("entries %d to %d: %d segments, %d bytes", out.First, out.Last, out.Segments, out.Bytes))
	t.Row("from", Escaped(journal))
	t.Row("to", Escaped(out.Directory))
	t.Row("ends with", out.Hash)
	t.Row("state", fmt.Sprintf("%d bytes stand in for them", out.State))
	t.Row("verify with", `"pwos audit verify `+Escaped(out.Directory)+` `+Escaped(journal)+`"`)
	return t
}

// ArchivedText says which entries are archived, and where.
func ArchivedText(a *schema.Archived) string {
	if a.Directory == "" {
		return fmt.Sprintf("entries %d to %d are archived: they are not in the journal any more", a.First, a.Last)
	}
	return fmt.Sprintf("entries %d to %d are archived in %s", a.First, a.Last, Escaped(a.Directory))
}

// RedactTable says what an Audit.Redact has removed, and what still has the value.
func RedactTable(out *schema.AuditRedactOutput) *Table {
	t := new(Table)
	t.Row("redacted", Escaped(out.Member)+" of entry "+strconv.FormatInt(out.Seq, 10))
	switch {
	case out.By != 0:
		t.Row("vouched for", "by entry "+strconv.FormatInt(out.By, 10))
	case out.Already:
		t.Row("vouched for", "it was redacted before: nothing was changed")
	default:
		t.Row("vouched for", "the line refers to a blob, and was not changed")
	}
	if len(out.Also) > 0 {
		list := make([]string, len(out.Also))
		for i, seq := range out.Also {
			list[i] = strconv.FormatInt(seq, 10)
		}
		if out.More {
			list = append(list, "and more")
		}
		t.Row("also in", "entries "+strings.Join(list, ", ")+": redact these too")
	}
	if out.Blobs > 0 {
		t.Row("removed", fmt.Sprintf("%d blobs that were the value", out.Blobs))
	}
	for _, path := range out.Left {
		t.Row("not changed", "the blob "+Escaped(path)+", which may have the value: remove it, or wait until it expires")
	}
	if out.Cluster {
		t.Row("not changed", "the copy of the journal on the cluster's bus, which keeps the value")
	}
	return t
}
