package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// table is text in columns. Without a row it is nothing at all.
type table struct {
	head []string
	rows [][]string

	width int // that the last column is broken to, in characters; 0: it is as wide as it is
}

func (t *table) header(cells ...string) { t.head = cells }

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// gap lies between two columns.
const gap = "  "

// printTable writes t to stdout, broken to the width of the terminal.
func (a *app) printTable(t *table) error {
	t.width = a.width()
	return t.write(a.stdout)
}

// write writes t, its header in capitals, each column as wide as its widest cell.
func (t *table) write(w io.Writer) error {
	if len(t.rows) == 0 {
		return nil
	}
	rows := t.rows
	if t.head != nil {
		head := make([]string, len(t.head))
		for i, cell := range t.head {
			head[i] = strings.ToUpper(cell)
		}
		rows = append([][]string{head}, rows...)
	}
	widths := widthsOf(rows)
	var b strings.Builder
	for _, row := range rows {
		var lead strings.Builder
		last := len(row) - 1
		for i, cell := range row[:last] {
			lead.WriteString(cell)
			lead.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)) + gap)
		}
		b.WriteString(strings.TrimRight(hang(lead.String(), row[last], t.width), " "))
		b.WriteByte('\n')
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// narrow takes the columns of these names away where a line is wider than width; 0 is as wide as it takes.
func (t *table) narrow(width int, names ...string) {
	if len(t.rows) == 0 || width == 0 {
		return
	}
	total := -len(gap)
	for _, w := range widthsOf(append([][]string{t.head}, t.rows...)) {
		total += w + len(gap)
	}
	if total <= width {
		return
	}
	head := t.head
	without := func(cells []string) (kept []string) {
		for i, cell := range cells {
			if !slices.Contains(names, head[i]) {
				kept = append(kept, cell)
			}
		}
		return kept
	}
	t.head = without(head)
	for i, row := range t.rows {
		t.rows[i] = without(row)
	}
}

func widthsOf(rows [][]string) []int {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}
