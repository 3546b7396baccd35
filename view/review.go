package view

import (
	"fmt"

	"github.com/promptware-os/pwos/schema"
)

// ApplyPlan returns a table of what is taken over from the copy of an agent.
func ApplyPlan(plan *schema.ReviewOutput, style Paint) *Table {
	return reviewPlan(plan, "takes over", map[string]string{"made": "makes", "changed": "changes", "removed": "removes"}, style)
}

// DiscardPlan returns a table of what is dropped from the copy of an agent.
func DiscardPlan(plan *schema.ReviewOutput, style Paint) *Table {
	return reviewPlan(plan, "drops", map[string]string{"made": "was removed", "changed": "was changed", "removed": "was made"}, style)
}

func reviewPlan(plan *schema.ReviewOutput, what string, words map[string]string, style Paint) *Table {
	t := new(Table)
	t.Row(what, style(Bold, Escaped(plan.Agent)))
	t.Row("directory", Escaped(plan.Tree))
	fileRows(t, &plan.Files, mostPlanned, words)
	conflictRows(t, plan.Conflicts, style)
	return t
}

// AppliedText describes in a line what was taken over from the copy of an agent.
func AppliedText(out *schema.ReviewOutput) string {
	text := fmt.Sprintf("nothing is changed in %s by what %s changed", Escaped(out.Tree), Escaped(out.Agent))
	if out.Step != 0 {
		text = fmt.Sprintf("applied %s to %s (%s)", Escaped(out.Agent), Escaped(out.Tree), FilesText(&out.Files))
	}
	if n := len(out.Conflicts); n > 0 {
		text += fmt.Sprintf(", %d left as they are", n)
	}
	if out.Ended {
		text += "; the copy is removed"
	}
	if out.Step != 0 {
		text += fmt.Sprintf("; to revert it: %s", stepCommand("undo", out.Agent, out.Step))
	}
	return text
}

// DiscardedText describes in a line what was dropped.
func DiscardedText(out *schema.ReviewOutput) string {
	if out.Ended {
		return fmt.Sprintf("discarded the copy of %s that %s worked on", Escaped(out.Tree), Escaped(out.Agent))
	}
	text := fmt.Sprintf("dropped %d changes from the copy of %s that %s works on", out.Files.Count(), Escaped(out.Tree), Escaped(out.Agent))
	if out.Step != 0 {
		text += fmt.Sprintf("; to revert it: %s --tree %s", stepCommand("undo", out.Agent, out.Step), Escaped(out.Tree))
	}
	return text
}
