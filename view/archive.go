package view

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

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
