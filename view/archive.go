package view

import (
	"fmt"

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
