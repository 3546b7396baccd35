package main

import (
	"bytes"
	"fmt"
	"strings"

	"golang.org/x/term"
)

// size is that of the terminal; one that does not tell is taken for the usual.
func (s *screen) size() (width, height int) {
	width, height, err := term.GetSize(int(s.app.stdout.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// lines is the screen, at most height lines of at most width characters.
func (s *screen) lines(width, height int) []string {
	lines := []string{
		s.app.style(bold, cut(fmt.Sprintf("pwos top   tick %d   %d processes   %d calls, %d denied   %s",
			s.tick, len(s.tree), s.metrics.TotalCalls, s.metrics.DeniedCalls, s.at.Format("15:04:05")), width)),
		"",
	}
	lines = append(lines, s.table(width)...)
	for len(lines) < height-1 {
		lines = append(lines, "")
	}
	lines = lines[:max(height-1, 1)]
	return append(lines, s.bottom(width))
}

// table is the processes that there is room for, the chosen one marked.
func (s *screen) table(width int) []string {
	if len(s.tree) == 0 {
		return []string{cut(`no processes: "pwos run -d -- PROGRAM" starts one`, width)}
	}
	t := new(table)
	t.header(psHeader()...)
	for _, p := range s.visible() {
		row, err := p.row(s.tokens[p.PID])
		if err != nil { // a form that this pwos does not know
			row = []string{fmt.Sprint(p.PID), shortened(escaped(p.AgentID), maxName), p.State}
		}
		t.row(row...)
	}
	var text bytes.Buffer
	_ = t.write(&text) // a buffer takes everything
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	for i, line := range lines {
		if i == 0 {
			lines[i] = s.app.style(faint, cut("  "+line, width))
		} else if p := s.visible()[i-1]; p.PID == s.chosen {
			lines[i] = s.app.style(bold, cut("> "+line, width))
		} else {
			lines[i] = cut("  "+line, width)
		}
	}
	return lines
}

// bottom is the last line: the question that is open, or what was done, or the keys.
func (s *screen) bottom(width int) string {
	switch {
	case s.asking == 'K':
		return s.app.style(bad, cut(fmt.Sprintf("kill pid %d and its descendants? y/n", s.chosen), width))
	case s.asking == 'R':
		return s.app.style(bad, cut(fmt.Sprintf("take away what pid %d was granted? y/n", s.chosen), width))
	case s.said != "" && s.saidLoud:
		return s.app.style(bad, cut(s.said, width))
	case s.said != "":
		return cut(s.said, width)
	}
	return s.app.style(faint, cut("q quit   up/down choose   K kill   R revoke", width))
}

// cut is a line that fits: a wider one would become two.
func cut(line string, width int) string {
	runes := []rune(line)
	if len(runes) > width {
		runes = runes[:width]
	}
	return string(runes)
}
