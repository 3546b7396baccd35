package view

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
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
	if object := e.object(names); object != "" {
		line += " " + object
	}
	if outcome := e.outcome(names, style); outcome != "" {
		line += " → " + outcome
	}
	return line
}

// Parts returns the object of the call and its outcome without the status, for a front end that shows the status by
// other means.
func (e *Entry) Parts(names Names) (object, outcome string) {
	object = e.object(names)
	if e.Success || e.Error == "" {
		return object, e.outcome(names, Plain)
	}
	outcome = Escaped(string(e.Error))
	if advice := e.Advice(); advice != "" {
		outcome += "; " + advice
	}
	return object, outcome
}

// Plain is a Paint that returns text unchanged.
func Plain(_ Look, text string) string { return text }

// outcome describes the outcome of the call; "" for a success without a result to show.
func (e *Entry) outcome(names Names, style Paint) string {
	switch {
	case e.Status == schema.StatusRunning:
		return style(Faint, "running")
	case e.Status == schema.StatusUnknown && e.Error == "":
		return style(Bad, "unknown: its end could not be recorded")
	case e.Success:
		return e.result(names)
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

// Advice returns the fix for a refusal whose message does not name a command; "" if there is none.
func (e *Entry) Advice() string {
	id := fault.ID(e.ErrorID)
	if Exceptable(id) {
		return Exception(e.Seq) + " shows the exception that would allow it"
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

// MetricsTable returns a table with a row for each syscall. The counts of a syscall with a code of CAP are by that
// code, the latencies by type.
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

// Internal reports whether entries of the type are steps of the kernel that no agent has requested. An effect of the
// kernel for an agent, such as Net.Connect, is a call of the agent.
func Internal(typ string) bool {
	row, ok := schema.Lookup(typ)
	return ok && row.Internal && row.Outcome == ""
}

// OperatorQuery reports whether the entry is a query by the operator.
func OperatorQuery(e *schema.AuditEntry) bool {
	row, ok := schema.Lookup(e.Type)
	return ok && e.PID == 0 && row.Kind == schema.KindQuery
}

// Refusal reports whether an error code means that the caller is not allowed to make the call: a denial (CAP 6).
func Refusal(code int64) bool {
	return (&fault.Fault{Kind: fault.KindOf(int(code))}).Denied()
}

// ArchiveTable describes the entries that an Audit.Archive has moved out of the journal in a directory, and how to
// verify them.
func ArchiveTable(out *schema.AuditArchiveOutput, journal string) *Table {
	t := new(Table)
	t.Row("moved", fmt.Sprintf("entries %d to %d: %d segments, %d bytes", out.First, out.Last, out.Segments, out.Bytes))
	t.Row("from", Escaped(journal))
	t.Row("to", Escaped(out.Directory))
	t.Row("ends with", out.Hash)
	t.Row("state", fmt.Sprintf("%d bytes replace them", out.State))
	t.Row("verify with", quote.Command("pwos", "audit", "verify", out.Directory, journal))
	return t
}

// ArchivedText describes which entries are archived, and where.
func ArchivedText(a *schema.Archived) string {
	if a.Directory == "" {
		return fmt.Sprintf("entries %d to %d are archived: they are no longer in the journal", a.First, a.Last)
	}
	return fmt.Sprintf("entries %d to %d are archived in %s", a.First, a.Last, Escaped(a.Directory))
}

// StepRedactTable is a redaction of what a file had in steps.
func StepRedactTable(out *schema.StepRedactOutput) *Table {
	t := new(Table)
	for i, path := range out.Paths {
		t.Row([]string{"redacted", ""}[min(i, 1)], Escaped(path))
	}
	t.Row("directory", Escaped(out.Tree))
	if out.Contents == 0 {
		t.Row("removed", "nothing: it was not there any more")
	} else {
		t.Row("removed", fmt.Sprintf("%d contents, from %s on", out.Contents, StepName(out.Agent, out.Step)))
	}
	return t
}

// RedactTable describes what an Audit.Redact has removed, and which places still have the value.
func RedactTable(out *schema.AuditRedactOutput) *Table {
	t := new(Table)
	t.Row("redacted", Escaped(out.Member)+" of entry "+strconv.FormatInt(out.Seq, 10))
	switch {
	case out.By != 0:
		t.Row("signed", "by entry "+strconv.FormatInt(out.By, 10))
	case out.Already && out.Steps > 0:
		t.Row("signed", "as before: the line was not changed")
	case out.Already:
		t.Row("signed", "by an earlier entry: it was redacted before, and nothing was changed")
	default:
		t.Row("signed", "as before: the line refers to a blob, and was not changed")
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
		t.Row("removed", fmt.Sprintf("%d blobs with the value", out.Blobs))
	}
	if out.Steps > 0 {
		t.Row("removed", fmt.Sprintf("from %d contents, notes and prompts of steps", out.Steps))
	}
	for _, path := range out.Left {
		t.Row("not changed", "the blob "+Escaped(path)+", which may have the value: remove it, or wait until it expires")
	}
	if out.Cluster {
		t.Row("not changed", "the copy of the journal on the cluster's bus, which still has the value")
	}
	return t
}
