package view

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/promptware-os/pwos/schema"
)

// TableOf returns a table of any value: of a list of objects with a column for each member, of any other list with a
// line for each element, of an object with a line for each member. An object whose only member is a list is formatted
// as that list.
func TableOf(raw schema.Value) *Table {
	members, ok := Members(raw)
	if !ok {
		return listTable(raw)
	}
	names := slices.Sorted(maps.Keys(members))
	if len(names) == 1 {
		if _, ok := Elements(members[names[0]]); ok {
			return listTable(members[names[0]])
		}
	}
	t := new(Table)
	for _, name := range names {
		t.Row(Escaped(name), Shown(members[name]))
	}
	return t
}

func listTable(raw schema.Value) *Table {
	t := new(Table)
	list, ok := Elements(raw)
	if !ok {
		t.Row(Shown(raw))
		return t
	}
	columns := columnsOf(list)
	if columns == nil {
		for _, element := range list {
			t.Row(Shown(element))
		}
		return t
	}
	t.Header(columns...)
	for _, element := range list {
		members, _ := Members(element)
		var cells []string
		for _, name := range columns {
			cell := ""
			if value, ok := members[name]; ok {
				cell = Shown(value)
			}
			cells = append(cells, cell)
		}
		t.Row(cells...)
	}
	return t
}

// columnsOf returns the names of all members of a list of objects, sorted; nil for any other list.
func columnsOf(list []schema.Value) []string {
	all := make(map[string]bool)
	for _, element := range list {
		members, ok := Members(element)
		if !ok {
			return nil
		}
		for name := range members {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// Table is text in columns. Without rows, its text is empty.
type Table struct {
	Head []string
	Rows [][]string

	Width int // maximum width of a line, in characters; 0: the last column is not wrapped
}

// Header sets the names of the columns.
func (t *Table) Header(cells ...string) { t.Head = cells }

// Row adds a row, which may have fewer cells.
func (t *Table) Row(cells ...string) { t.Rows = append(t.Rows, cells) }

// Gap separates two columns.
const Gap = "  "

// Text formats the table: its header in capitals, each column as wide as its widest cell.
func (t *Table) Text() string {
	if len(t.Rows) == 0 {
		return ""
	}
	rows := t.Rows
	if t.Head != nil {
		head := make([]string, len(t.Head))
		for i, cell := range t.Head {
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
			lead.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)) + Gap)
		}
		b.WriteString(strings.TrimRight(Hang(lead.String(), row[last], t.Width), " "))
		b.WriteByte('\n')
	}
	return b.String()
}

// Narrow drops the columns names if a line is wider than width; 0 is unlimited.
func (t *Table) Narrow(width int, names ...string) {
	if len(t.Rows) == 0 || width == 0 {
		return
	}
	total := -len(Gap)
	for _, w := range widthsOf(append([][]string{t.Head}, t.Rows...)) {
		total += w + len(Gap)
	}
	if total > width {
		t.Drop(names...)
	}
}

// Drop removes the columns names.
func (t *Table) Drop(names ...string) {
	head := t.Head
	without := func(cells []string) (kept []string) {
		for i, cell := range cells {
			if !slices.Contains(names, head[i]) {
				kept = append(kept, cell)
			}
		}
		return kept
	}
	t.Head = without(head)
	for i, row := range t.Rows {
		t.Rows[i] = without(row)
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
