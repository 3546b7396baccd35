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

// feed prints a table row by row, with columns of fixed width. As JSON, each row is a line.
type feed struct {
	app     *app
	columns []column
	begun   bool
}

// column has the name of a column, and the minimum width of its cells in characters.
type column struct {
	name  string
	width int
}

func newFeed(a *app, columns ...column) *feed { return &feed{app: a, columns: columns} }

// write prints one row: raw as JSON, or the cells.
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

// printValue prints a JSON value: as one line, or as a table.
func (a *app) printValue(raw schema.Value) error {
	if a.wantsJSON() {
		return a.printLine(raw)
	}
	return a.print(view.TableOf(raw).Text())
}

// printLine prints raw as a line.
func (a *app) printLine(raw []byte) error { return a.print(string(raw) + "\n") }

// print writes text to stdout, unchanged.
func (a *app) print(text string) error {
	if _, err := a.stdout.WriteString(text); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// printEither prints the output of a verb: as a line of JSON, or as a table.
func (a *app) printEither(json []byte, t *view.Table) error {
	if a.wantsJSON() {
		return a.printLine(json)
	}
	return a.printTable(t)
}

// listing prints a list: each element as a line of JSON, or all as a table.
type listing struct {
	view.Table

	app *app
}

func (a *app) listing(header ...string) *listing {
	return &listing{app: a, Table: view.Table{Head: header}}
}

// add prints an element as JSON, or adds its cells as a row.
func (l *listing) add(json []byte, cells ...string) error {
	if l.app.wantsJSON() {
		return l.app.printLine(json)
	}
	l.Row(cells...)
	return nil
}

// end prints the table.
func (l *listing) end() error { return l.app.printTable(&l.Table) }

// withRaw returns the data of a call with one member unchanged, which marshalling would normalize.
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

// printEach prints each element of a list as a line of JSON.
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

// closeInto closes c and joins its error to err.
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
