package main_test

import (
	"strings"
	"testing"

	pwos "github.com/promptware-os/pwos/cmd/pwos"
)

// Columns go where there is no room for all, and only there.
func TestNarrow(t *testing.T) {
	t.Parallel()
	head := []string{"pid", "priority", "birth tick", "command"}
	rows := [][]string{{"1", "NORMAL", "0", "sh agent.sh"}, {"2", "HIGH", "7", ""}}
	const full = 3 + 2 + 8 + 2 + 10 + 2 + 11 // its width
	for width, want := range map[int]string{
		0:        "pid priority birth tick command",
		full:     "pid priority birth tick command",
		full - 1: "pid command",
		1:        "pid command",
	} {
		gotHead, gotRows := pwos.Narrowed(width, head, [][]string{rows[0], rows[1]}, "priority", "birth tick")
		if got := strings.Join(gotHead, " "); got != want || len(gotRows[0]) != len(gotHead) || gotRows[0][len(gotHead)-1] != "sh agent.sh" {
			t.Errorf("at %d: %q, %q, want %q", width, got, gotRows, want)
		}
	}
	if gotHead, _ := pwos.Narrowed(1, head, nil, "pid"); len(gotHead) != len(head) {
		t.Errorf("a table of nothing lost a column: %q", gotHead)
	}
}
