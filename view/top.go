package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/promptware-os/pwos/schema"
)

// Top is what top shows. The process that is chosen is known by its PID: rows come and go.
type Top struct {
	Tick      int64
	Metrics   schema.AuditMetricsOutput
	Processes []Process
	Tokens    map[int64]schema.Value // of the rows that were shown at the last look
	Chosen    int64
	first     int  // row that is drawn first
	Rows      int  // that there is room for
	Asking    rune // K or R while its confirmation is due, else 0
	Said      string
	Loud      bool
	At        time.Time
}

// Choose moves the choice by so many rows, and sees to it that it can be seen. Where the chosen one is gone, the one in its
// place is.
func (s *Top) Choose(by int) {
	if s.Rows == 0 { // not drawn yet
		s.Rows = 20
	}
	if len(s.Processes) == 0 {
		s.Chosen, s.first = 0, 0
		return
	}
	i := slices.IndexFunc(s.Processes, func(p Process) bool { return p.PID == s.Chosen })
	if i < 0 {
		i = s.first
	}
	i = min(max(i+by, 0), len(s.Processes)-1)
	s.Chosen = s.Processes[i].PID
	s.first = min(max(s.first, i-s.Rows+1), i)
}

// Visible returns the processes that there is room for.
func (s *Top) Visible() []Process {
	first := min(s.first, len(s.Processes))
	return s.Processes[first:min(first+s.Rows, len(s.Processes))]
}

// Say sets the last line to text, until the next key.
func (s *Top) Say(text string) { s.Said, s.Loud = text, false }

// Lines is the screen, at most height lines of at most width characters.
func (s *Top) Lines(width, height int, style Paint) []string {
	lines := []string{
		style(Bold, cut(fmt.Sprintf("pwos top   tick %d   %d processes   %d calls, %d denied   %s",
			s.Tick, len(s.Processes), s.Metrics.TotalCalls, s.Metrics.DeniedCalls, s.At.Format("15:04:05")), width)),
		"",
	}
	lines = append(lines, s.table(width, style)...)
	for len(lines) < height-1 {
		lines = append(lines, "")
	}
	lines = lines[:max(height-1, 1)]
	return append(lines, s.bottom(width, style))
}

// table is the processes that there is room for, the chosen one marked.
func (s *Top) table(width int, style Paint) []string {
	if len(s.Processes) == 0 {
		return []string{cut(`no processes: "pwos run -d -- PROGRAM" starts one`, width)}
	}
	t := new(Table)
	t.Header(ProcessHeader()...)
	for _, p := range s.Visible() {
		row, err := p.Row(s.Tokens[p.PID])
		if err != nil { // a form that this pwos does not know
			row = []string{fmt.Sprint(p.PID), shortened(Escaped(p.AgentID), maxName), p.State}
		}
		t.Row(row...)
	}
	lines := strings.Split(strings.TrimSuffix(t.Text(), "\n"), "\n")
	for i, line := range lines {
		if i == 0 {
			lines[i] = style(Faint, cut("  "+line, width))
		} else if p := s.Visible()[i-1]; p.PID == s.Chosen {
			lines[i] = style(Bold, cut("> "+line, width))
		} else {
			lines[i] = cut("  "+line, width)
		}
	}
	return lines
}

// bottom is the last line: the question that is open, or what was done, or the keys.
func (s *Top) bottom(width int, style Paint) string {
	switch {
	case s.Asking == 'K':
		return style(Bad, cut(fmt.Sprintf("kill pid %d and its descendants? y/n", s.Chosen), width))
	case s.Asking == 'R':
		return style(Bad, cut(fmt.Sprintf("take away what pid %d was granted? y/n", s.Chosen), width))
	case s.Said != "" && s.Loud:
		return style(Bad, cut(s.Said, width))
	case s.Said != "":
		return cut(s.Said, width)
	}
	return style(Faint, cut("q quit   up/down choose   K kill   R revoke", width))
}

// cut is a line that fits: a wider one would become two.
func cut(line string, width int) string {
	runes := []rune(line)
	if len(runes) > width {
		runes = runes[:width]
	}
	return string(runes)
}
