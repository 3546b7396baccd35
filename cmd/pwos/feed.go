package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/promptware-os/pwos/schema"
)

// feed is a table that is written while its rows come in: its columns have their width before there is anything in them. For
// programs each row is a line of JSON.
type feed struct {
	app     *app
	columns []column
	begun   bool
}

// column is a name, and the width in characters that its cells are filled up to.
type column struct {
	name  string
	width int
}

func newFeed(a *app, columns ...column) *feed { return &feed{app: a, columns: columns} }

// write writes one row: raw, or the cells.
func (f *feed) write(raw schema.Value, cells ...string) error {
	if f.app.wantsJSON() {
		return f.app.printLine(raw)
	}
	if !f.begun {
		f.begun = true
		names := make([]string, len(f.columns))
		for i, c := range f.columns {
			names[i] = strings.ToUpper(c.name)
		}
		if err := f.line(names); err != nil {
			return err
		}
	}
	return f.line(cells)
}

func (f *feed) line(cells []string) error {
	var b strings.Builder
	for i, cell := range cells {
		if i > 0 {
			b.WriteString(gap)
		}
		b.WriteString(cell)
		b.WriteString(strings.Repeat(" ", max(0, f.columns[i].width-utf8.RuneCountInString(cell))))
	}
	if _, err := fmt.Fprintln(f.app.stdout, strings.TrimRight(b.String(), " ")); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}
