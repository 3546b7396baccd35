package view_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// TestChosen: the choice stays on its process while that is listed, stays within the list, and is visible.
func TestChosen(t *testing.T) {
	t.Parallel()
	pids := []int64{1, 2, 3, 4, 5}
	for _, tt := range []struct {
		name       string
		pids       []int64
		room       int
		chosen     int64
		moves      []int
		now, first int64
	}{
		{"no choice yet", pids, 3, 0, []int{0}, 1, 1},
		{"down", pids, 3, 1, []int{1, 1}, 3, 1},
		{"down and out of sight", pids, 3, 1, []int{1, 1, 1}, 4, 2},
		{"the end", pids, 3, 5, []int{1}, 5, 3},
		{"up again", pids, 3, 1, []int{1, 1, 1, -1, -1, -1}, 1, 1},
		{"above the beginning", pids, 3, 1, []int{-1}, 1, 1},
		{"the chosen one has ended", pids, 3, 9, []int{0}, 1, 1},
		{"an empty list", nil, 3, 9, []int{1}, 0, 0},
	} {
		if now, first := chosen(tt.pids, tt.room, tt.chosen, tt.moves...); now != tt.now || first != tt.first {
			t.Errorf("%s: %d is chosen and %d shown first, want %d and %d", tt.name, now, first, tt.now, tt.first)
		}
	}
}

// chosen moves the choice over pids, of which room are visible. It returns the chosen PID and the first visible one.
func chosen(pids []int64, room int, chosen int64, moves ...int) (now, first int64) {
	top := &view.Top{Rows: room, Chosen: chosen}
	for _, pid := range pids {
		top.Processes = append(top.Processes, view.Process{Descriptor: schema.Descriptor{PID: pid}})
	}
	for _, by := range moves {
		top.Choose(by)
	}
	if len(top.Visible()) > 0 {
		first = top.Visible()[0].PID
	}
	return top.Chosen, first
}

// TestLines: the screen has the height of the terminal, no line is wider, the chosen process is marked, and the last
// line has the question or the outcome.
func TestLines(t *testing.T) {
	t.Parallel()
	top := &view.Top{Rows: 2, Chosen: 2, Processes: []view.Process{
		{Descriptor: schema.Descriptor{PID: 1, AgentID: "a", State: "READY"}}, {Descriptor: schema.Descriptor{PID: 2, AgentID: "b", State: "READY"}},
	}}
	lines := top.Lines(30, 8, unpainted)
	if len(lines) != 8 || !strings.HasPrefix(lines[4], "> 2") || !strings.HasPrefix(lines[3], "  1") {
		t.Errorf("the screen is %q", lines)
	}
	for _, line := range lines {
		if utf8.RuneCountInString(line) > 30 {
			t.Errorf("%q is too wide", line)
		}
	}
	for want, ask := range map[string]rune{"kill pid 2 and its descendants? y/n": 'K', "revoke the grant of pid 2? y/n": 'R'} {
		top.Asking = ask
		if lines := top.Lines(80, 8, unpainted); lines[7] != want {
			t.Errorf("the question is %q, want %q", lines[7], want)
		}
	}
	top.Asking, top.Processes = 0, nil
	top.Add(time.Unix(1, 0), 1, &schema.AuditMetricsOutput{})
	top.Say("killed pid 2")
	if lines := top.Lines(80, 8, unpainted); lines[7] != "killed pid 2" || !strings.HasPrefix(lines[2], "no processes") {
		t.Errorf("the screen is %q", lines)
	}
}

// TestTopOfKernels: for a kernel that does not answer, only the error is shown, and neither counters nor processes of
// another kernel.
func TestTopOfKernels(t *testing.T) {
	t.Parallel()
	top := &view.Top{Rows: 5, Kernels: "kernels: [alpha] beta", Processes: []view.Process{{Descriptor: schema.Descriptor{PID: 7, AgentID: "of-alpha"}}}}
	top.Add(time.Unix(1, 0), 3, &schema.AuditMetricsOutput{TotalCalls: 4711})
	top.Choose(0)
	top.Show()
	if top.Chosen != 0 || len(top.Visible()) != 0 {
		t.Errorf("%d of %v is chosen", top.Chosen, top.Visible())
	}
	for trouble, want := range map[string]string{"": "asking ...", "the kernel\x1b[2J\nbeta cannot be reached": `the kernel\u001b[2J\u000abeta cannot be reached`} {
		top.Trouble = trouble
		lines := top.Lines(60, 10, unpainted)
		screen := strings.Join(lines, "\n")
		if len(lines) != 10 || !strings.Contains(screen, want) || strings.Contains(screen, "4711") || strings.Contains(screen, "alpha\n") || strings.Contains(screen, "no processes") || strings.Contains(screen, "\x1b") {
			t.Errorf("%q: the screen is\n%s", trouble, screen)
		}
	}
}

// TestRates: rates are the differences of the kernel's counters, the highest rate has the highest bar, and a counter
// that decreases has the rate 0.
func TestRates(t *testing.T) {
	t.Parallel()
	top := &view.Top{}
	at := time.Unix(0, 0)
	for i, calls := range []int64{100, 110, 150, 150, 20} {
		top.Add(at.Add(time.Duration(i)*2*time.Second), 1, &schema.AuditMetricsOutput{TotalCalls: calls, DeniedCalls: 1})
	}
	lines := top.Lines(80, 8, unpainted)
	if want := "calls ▃█▁▁ 0/s   denied ▁▁▁▁ 0/s"; lines[1] != want {
		t.Errorf("%q, want %q", lines[1], want)
	}
	for range 100 {
		at = at.Add(time.Hour)
		top.Add(at, 1, &schema.AuditMetricsOutput{TotalCalls: 20})
	}
	if width := utf8.RuneCountInString(top.Lines(200, 8, unpainted)[1]); width != len("calls  0/s   denied  0/s")+60 {
		t.Errorf("%d characters", width)
	}
	if got := new(view.Top).Lines(80, 8, unpainted)[1]; got != "" {
		t.Errorf("before the second update: %q", got)
	}
}

// unpainted is a Paint that returns text unchanged.
func unpainted(_ view.Look, text string) string { return text }
