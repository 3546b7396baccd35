package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// Closer is a function that implements io.Closer.
type Closer func() error

// Close implements io.Closer.
func (c Closer) Close() error { return c() }

// PrintText prints text as a line, unchanged.
func (a *App) PrintText(text string) error { return a.Print(text + "\n") }

// Feed prints a table row by row, with columns of fixed width. As JSON, each row is a line.
type Feed struct {
	App     *App
	columns []Column
	begun   bool
}

// Column has the name of a column, and the minimum width of its cells in characters.
type Column struct {
	Name  string
	Width int
}

// Col returns a column.
func Col(name string, width int) Column { return Column{name, width} }

// NewFeed returns a feed with these columns.
func NewFeed(a *App, columns ...Column) *Feed { return &Feed{App: a, columns: columns} }

// Write prints one row: raw as JSON, or the cells.
func (f *Feed) Write(raw schema.Value, cells ...string) error {
	if f.App.WantsJSON() {
		return f.App.PrintLine(raw)
	}
	if !f.begun {
		f.begun = true
		names := make([]string, len(f.columns))
		for i, c := range f.columns {
			names[i] = strings.ToUpper(c.Name)
		}
		if err := f.line(names); err != nil {
			return err
		}
	}
	return f.line(cells)
}

func (f *Feed) line(cells []string) error {
	var b strings.Builder
	for i, cell := range cells {
		if i > 0 {
			b.WriteString(view.Gap)
		}
		b.WriteString(cell)
		b.WriteString(strings.Repeat(" ", max(0, f.columns[i].Width-utf8.RuneCountInString(cell))))
	}
	return f.App.Print(strings.TrimRight(b.String(), " ") + "\n")
}

// PrintValue prints a JSON value: as one line, or as a table.
func (a *App) PrintValue(raw schema.Value) error {
	if a.WantsJSON() {
		return a.PrintLine(raw)
	}
	return a.Print(view.TableOf(raw).Text())
}

// PrintLine prints raw as a line.
func (a *App) PrintLine(raw []byte) error { return a.Print(string(raw) + "\n") }

// Print writes text to stdout, unchanged.
func (a *App) Print(text string) error {
	if _, err := a.Stdout.WriteString(text); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// PrintEither prints the output of a verb: as a line of JSON, or as a table.
func (a *App) PrintEither(json []byte, t *view.Table) error {
	if a.WantsJSON() {
		return a.PrintLine(json)
	}
	return a.PrintTable(t)
}

// listing prints a list: each element as a line of JSON, or all as a table.
type listing struct {
	view.Table

	app *App
}

func (a *App) Listing(header ...string) *listing {
	return &listing{app: a, Table: view.Table{Head: header}}
}

// Add prints an element as JSON, or adds its cells as a row.
func (l *listing) Add(json []byte, cells ...string) error {
	if l.app.WantsJSON() {
		return l.app.PrintLine(json)
	}
	l.Row(cells...)
	return nil
}

// End prints the table.
func (l *listing) End() error { return l.app.PrintTable(&l.Table) }

// WithRaw returns the data of a call with one member unchanged, which marshalling would normalize.
func WithRaw(in any, name string, value schema.Value) (schema.Value, error) {
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

// PrintEach prints each element of a list as a line of JSON.
func PrintEach[T any](a *App, list []T) error {
	for i := range list {
		line, err := schema.Marshal(&list[i])
		if err != nil {
			return err
		}
		if err := a.PrintLine(line); err != nil {
			return err
		}
	}
	return nil
}

// CloseInto closes c and joins its error to err.
func CloseInto(err *error, c io.Closer) {
	if closeErr := c.Close(); closeErr != nil {
		*err = errors.Join(*err, closeErr)
	}
}

// PrintTable prints t, wrapped to the terminal's width.
func (a *App) PrintTable(t *view.Table) error {
	t.Width = a.Width()
	return a.Print(t.Text())
}

func Counted(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
