package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// feed is a table that is printed row by row: its columns have fixed widths. For programs each row is a line of JSON.
type feed struct {
	app     *app
	columns []column
	begun   bool
}

// column is a name, and the width in characters that cells are padded to.
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
			b.WriteString(view.Gap)
		}
		b.WriteString(cell)
		b.WriteString(strings.Repeat(" ", max(0, f.columns[i].width-utf8.RuneCountInString(cell))))
	}
	return f.app.print(strings.TrimRight(b.String(), " ") + "\n")
}

// printValue writes one JSON value: as a line of JSON, or as a table for people.
func (a *app) printValue(raw schema.Value) error {
	if a.wantsJSON() {
		return a.printLine(raw)
	}
	return a.print(view.TableOf(raw).Text())
}

// printLine writes raw as a line.
func (a *app) printLine(raw []byte) error { return a.print(string(raw) + "\n") }

// print writes text as it is.
func (a *app) print(text string) error {
	if _, err := a.stdout.WriteString(text); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// printEither writes what a verb shows as a line of JSON, or for people as a table.
func (a *app) printEither(json []byte, t *view.Table) error {
	if a.wantsJSON() {
		return a.printLine(json)
	}
	return a.printTable(t)
}

// listing prints a list: a line of JSON for each element, or a table for people.
type listing struct {
	view.Table

	app *app
}

func (a *app) listing(header ...string) *listing {
	return &listing{app: a, Table: view.Table{Head: header}}
}

// add adds an element, as JSON and as the cells of a row.
func (l *listing) add(json []byte, cells ...string) error {
	if l.app.wantsJSON() {
		return l.app.printLine(json)
	}
	l.Row(cells...)
	return nil
}

// end ends the list.
func (l *listing) end() error { return l.app.printTable(&l.Table) }

// withRaw returns the data of a call with one member as it was written: marshalling would normalize the
// value.
func withRaw(in any, name string, value schema.Value) (schema.Value, error) {
	data, err := schema.Marshal(in)
	if err != nil {
		return nil, err
	}
	var o view.Object // nil: there is no member yet
	if len(data) > len("{}") {
		o = data[:len(data)-1]
	}
	return o.Raw(name, value).Close(), nil
}

// printEach writes the elements of a list, one line of JSON each.
func printEach[T any](a *app, list []T) error {
	for i := range list {
		line, err := schema.Marshal(&list[i])
		if err != nil {
			return err
		}
		if err := a.printLine(line); err != nil {
			return err
		}
	}
	return nil
}

// closeInto closes c, and adds its error to err.
func closeInto(err *error, c io.Closer) {
	if closeErr := c.Close(); closeErr != nil {
		*err = errors.Join(*err, closeErr)
	}
}

// printTable prints t, wrapped to the terminal's width.
func (a *app) printTable(t *view.Table) error {
	t.Width = a.width()
	return a.print(t.Text())
}
