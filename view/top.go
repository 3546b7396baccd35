package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/promptware-os/pwos/schema"
)

// Top is the state of the screen of pwos top. The chosen process is identified by its PID, since rows change.
type Top struct {
	Processes []Process
	Tokens    map[int64]schema.Value // of the visible rows, at the last update
	Chosen    int64
	Rows      int  // number of rows that fit the screen
	Asking    rune // K or R until the user answers, else 0
	Said      string
	Loud      bool
	Other     string // name of the displayed kernel; empty: the connected one
	Trouble   string // error of the displayed kernel; empty: it answers
	Kernels   string // names of the cluster's kernels, the displayed one marked; empty: there is only one

	first   int // index of the first visible row
	tick    int64
	at      time.Time
	metrics schema.AuditMetricsOutput
	calls   []float64 // calls a second between updates, the latest last
	denied  []float64
}

// history is the number of displayed rates.
const history = 30

// Add adds a sample of the kernel's counters, from which the rates are computed.
func (s *Top) Add(at time.Time, tick int64, m *schema.AuditMetricsOutput) {
	if seconds := at.Sub(s.at).Seconds(); !s.at.IsZero() && seconds > 0 {
		s.calls = latest(s.calls, float64(m.TotalCalls-s.metrics.TotalCalls)/seconds)
		s.denied = latest(s.denied, float64(m.DeniedCalls-s.metrics.DeniedCalls)/seconds)
	}
	s.at, s.tick, s.metrics = at, tick, *m
}

// latest appends a rate. The rate of a counter that has decreased, as after a change of the kernel, is 0.
func latest(rates []float64, rate float64) []float64 {
	rates = append(slices.Clone(rates), max(rate, 0))
	return rates[max(0, len(rates)-history):]
}

// sparkline draws rates as bars, relative to the highest.
func sparkline(rates []float64) string {
	bars := []rune("▁▂▃▄▅▆▇█")
	highest := max(slices.Max(append([]float64{1}, rates...)), 1)
	var b strings.Builder
	for _, rate := range rates {
		b.WriteRune(bars[int(rate/highest*float64(len(bars)-1)+0.5)])
	}
	return b.String()
}

// rates returns the line of the rates; empty before the second sample.
func (s *Top) rates() string {
	if len(s.calls) == 0 {
		return ""
	}
	last := len(s.calls) - 1
	return fmt.Sprintf("calls %s %.0f/s   denied %s %.0f/s", sparkline(s.calls), s.calls[last], sparkline(s.denied), s.denied[last])
}

// Choose moves the choice by a number of rows, and scrolls to it. If the chosen process is no longer listed, it starts
// from the first visible row.
func (s *Top) Choose(by int) {
	if s.Rows == 0 { // before the first update
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

// Visible returns the processes that fit the screen.
func (s *Top) Visible() []Process {
	first := min(s.first, len(s.Processes))
	return s.Processes[first:min(first+s.Rows, len(s.Processes))]
}

// Show clears the state for another kernel.
func (s *Top) Show() {
	s.Processes, s.Tokens, s.Trouble, s.Said = nil, nil, "", ""
	s.tick, s.metrics, s.Chosen, s.first, s.at, s.calls, s.denied = 0, schema.AuditMetricsOutput{}, 0, 0, time.Time{}, nil, nil
}

// Say displays text in the last line until the next key.
func (s *Top) Say(text string) { s.Said, s.Loud = text, false }

// Lines returns the screen, at most height lines of at most width characters.
func (s *Top) Lines(width, height int, style Paint) []string {
	head, rates := "pwos top", ""
	if !s.at.IsZero() && s.Trouble == "" {
		head = fmt.Sprintf("%s   tick %d   %d processes   %d calls, %d denied   %s",
			head, s.tick, len(s.Processes), s.metrics.TotalCalls, s.metrics.DeniedCalls, s.at.Format("15:04:05"))
		rates = s.rates()
	}
	lines := []string{style(Bold, cut(head, width)), cut(rates, width)}
	if s.Kernels != "" {
		lines = append(lines, cut(s.Kernels, width))
	}
	lines = append(lines, s.table(width, style)...)
	for len(lines) < height-1 {
		lines = append(lines, "")
	}
	lines = lines[:max(height-1, 1)]
	return append(lines, s.bottom(width, style))
}

// table returns the processes that fit the screen, the chosen one marked.
func (s *Top) table(width int, style Paint) []string {
	switch {
	case s.Trouble != "":
		return []string{"", style(Bad, cut(Escaped(s.Trouble), width)), cut("Trying again.", width)}
	case s.at.IsZero() && len(s.Processes) == 0:
		return []string{"", "asking ..."}
	case len(s.Processes) == 0:
		return []string{cut(`no processes: "pwos run -d -- PROGRAM" starts one`, width)}
	}
	t := new(Table)
	t.Header(ProcessHeader()...)
	for _, p := range s.Visible() {
		row, err := p.Row(s.Tokens[p.PID])
		if err != nil { // the answer has a form that this version does not know
			row = []string{fmt.Sprint(p.PID), shortened(Escaped(p.AgentID), maxName), p.State}
		}
		t.Row(row...)
	}
	t.Narrow(width-len("> "), "priority", "birth tick")
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

// bottom returns the last line: the question, the outcome of the last action, or the keys.
func (s *Top) bottom(width int, style Paint) string {
	switch {
	case s.Asking == 'K':
		of := ""
		if s.Other != "" {
			of = " of " + Escaped(s.Other)
		}
		return style(Bad, cut(fmt.Sprintf("kill pid %d%s and its descendants? y/n", s.Chosen, of), width))
	case s.Asking == 'R':
		return style(Bad, cut(fmt.Sprintf("revoke the grant of pid %d? y/n", s.Chosen), width))
	case s.Said != "" && s.Loud:
		return style(Bad, cut(s.Said, width))
	case s.Said != "":
		return cut(s.Said, width)
	}
	return style(Faint, cut("q quit   up/down choose   K kill   R revoke", width))
}

// cut shortens a line to the width, so that it does not wrap.
func cut(line string, width int) string {
	runes := []rune(line)
	if len(runes) > width {
		runes = runes[:width]
	}
	return string(runes)
}
