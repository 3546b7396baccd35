package view_test

import (
	"testing"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// plainly is a Paint that shows what stands out, and how.
func plainly(l view.Look, text string) string { return string(l) + ":" + text }

// The last cell of an entry says what came of the call, and what to do where a rule has refused it.
func TestEntryCells(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]schema.AuditEntry{
		"32:ok":      {Success: true},
		"2:running":  {Status: schema.StatusRunning},
		"31:no such": {Error: "no such"},
		"31:unknown: it ended, and that could not be recorded":  {Status: schema.StatusUnknown},
		`31:a rule says no2:, see "pwos policy allow --from 7"`: {Seq: 7, Error: "a rule says no", ErrorID: "policy.denied"},
		`31:\u001b[2J`: {Error: "\x1b[2J"},
	} {
		cells := (&view.Entry{AuditEntry: e}).Cells(plainly)
		if got := cells[len(cells)-1]; len(cells) != 6 || got != want {
			t.Errorf("%+v is shown as %q, want %q at the end", e, cells, want)
		}
	}
}
