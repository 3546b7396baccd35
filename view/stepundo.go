package view

import (
	"fmt"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// mostPlanned bounds the files and the conflicts that a plan lists: the question below it stays on the screen.
const mostPlanned = 12

// UndoPlan returns a table of what an undo of steps would do.
func UndoPlan(plan *schema.StepUndoOutput, style Paint) *Table {
	t := new(Table)
	of := Escaped(plan.Agent)
	if len(plan.Steps) > 0 {
		of += ":" + stepsText(plan.Steps)
	}
	t.Row("takes back", style(Bold, of))
	t.Row("directory", Escaped(plan.Tree))
	fileRows(t, &plan.Files, mostPlanned, map[string]string{"made": "makes", "changed": "changes", "removed": "removes", "missed": "not kept"})
	conflictRows(t, plan.Conflicts, style)
	if len(plan.Shared) > 0 {
		t.Row("shared with", Escaped(strings.Join(plan.Shared, ", "))+": some of this may be what they changed")
	}
	return t
}

// conflictRows adds the conflicts of a plan.
func conflictRows(t *Table, conflicts []schema.StepConflict, style Paint) {
	for i := range conflicts[:min(len(conflicts), mostPlanned)] {
		what, path := "  conflict", style(Bad, Escaped(conflicts[i].Path))
		if conflicts[i].Aside {
			what, path = "  stays", Escaped(conflicts[i].Path)
		}
		t.Row(what, path+": "+Escaped(conflicts[i].Why))
	}
	if more := len(conflicts) - mostPlanned; more > 0 {
		t.Row("", fmt.Sprintf("and %d more conflicts", more))
	}
}

// UndoneText describes in a line what an undo of steps has done.
func UndoneText(out *schema.StepUndoOutput) string {
	text := fmt.Sprintf("undid %s:%s in %s (%s)", Escaped(out.Agent), stepsText(out.Steps), Escaped(out.Tree), FilesText(&out.Files))
	if n := len(out.Conflicts); n > 0 {
		text += fmt.Sprintf(", %d left as they are", n)
	}
	if out.Step != 0 {
		text += fmt.Sprintf("; to revert the undo: %s", stepCommand("undo", out.Agent, out.Step))
	}
	return text
}
