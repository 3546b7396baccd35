package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
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

// object builds a JSON object, member by member.
type object []byte

func (o object) name(name string) object {
	if o == nil {
		o = append(o, '{')
	} else {
		o = append(o, ',')
	}
	return append(schema.AppendString(o, name), ':')
}

func (o object) text(name, value string) object { return schema.AppendString(o.name(name), value) }

func (o object) raw(name string, value []byte) object { return append(o.name(name), value...) }

func (o object) integer(name string, value int64) object {
	return strconv.AppendInt(o.name(name), value, 10)
}

// number writes value rounded to the given digits after the point.
func (o object) number(name string, value float64, digits int) object {
	return strconv.AppendFloat(o.name(name), value, 'f', digits, 64)
}

func (o object) boolean(name string, value bool) object {
	return strconv.AppendBool(o.name(name), value)
}

// close ends the object.
func (o object) close() []byte {
	if o == nil {
		return []byte("{}")
	}
	return append(o, '}')
}

// plainWriter shows anybody's text at a terminal: what the terminal would obey instead of drawing it is escaped, line ends
// and tabs aside.
type plainWriter struct {
	to   io.Writer
	half []byte // the beginning of a character whose end has not come yet
}

// Write writes all of p that is whole characters; it returns len(p) where that could be written.
func (w *plainWriter) Write(p []byte) (int, error) {
	text := append(w.half, p...)
	w.half = nil
	var out []byte
	for len(text) > 0 {
		if !utf8.FullRune(text) {
			w.half = append(w.half, text...)
			break
		}
		r, size := utf8.DecodeRune(text)
		switch {
		case r == '\n' || r == '\t':
			out = append(out, byte(r))
		case obeyed(r):
			out = append(out, escaped(string(r))...)
		default: // bytes that are no character become the sign for that
			out = utf8.AppendRune(out, r)
		}
		text = text[size:]
	}
	if _, err := w.to.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// printValue writes one JSON value: as a line of JSON, or as a table for people.
func (a *app) printValue(raw schema.Value) error {
	if a.wantsJSON() {
		return a.printLine(raw)
	}
	return tableOf(raw).write(a.stdout)
}

// printLine writes raw as a line.
func (a *app) printLine(raw []byte) error {
	if _, err := a.stdout.Write(append(raw[:len(raw):len(raw)], '\n')); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// tableOf arranges any value: a list of objects with a column a member, another list with a line an element, an object with a
// line a member. An object around nothing but one list is taken for that list.
func tableOf(raw schema.Value) *table {
	members, ok := objectOf(raw)
	if !ok {
		return listTable(raw)
	}
	names := slices.Sorted(maps.Keys(members))
	if len(names) == 1 {
		if _, ok := arrayOf(members[names[0]]); ok {
			return listTable(members[names[0]])
		}
	}
	t := new(table)
	for _, name := range names {
		t.row(escaped(name), shown(members[name]))
	}
	return t
}

func listTable(raw schema.Value) *table {
	t := new(table)
	list, ok := arrayOf(raw)
	if !ok {
		t.row(shown(raw))
		return t
	}
	columns := columnsOf(list)
	if columns == nil {
		for _, element := range list {
			t.row(shown(element))
		}
		return t
	}
	t.header(columns...)
	for _, element := range list {
		members, _ := objectOf(element)
		var cells []string
		for _, name := range columns {
			cell := ""
			if value, ok := members[name]; ok {
				cell = shown(value)
			}
			cells = append(cells, cell)
		}
		t.row(cells...)
	}
	return t
}

// columnsOf returns the names of all members of a list of objects, sorted; nil where it is another list.
func columnsOf(list []schema.Value) []string {
	all := make(map[string]bool)
	for _, element := range list {
		members, ok := objectOf(element)
		if !ok {
			return nil
		}
		for name := range members {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// closeInto closes c, and reports its failure where nothing worse happened.
func closeInto(err *error, c io.Closer) {
	if closeErr := c.Close(); closeErr != nil {
		*err = errors.Join(*err, closeErr)
	}
}

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

// The functions of this file take apart JSON that is known to be valid.

// objectOf returns the members of an object; ok is false where raw is none.
func objectOf(raw schema.Value) (members map[string]schema.Value, ok bool) {
	return valueOf[map[string]schema.Value](raw)
}

// arrayOf returns the elements of an array; ok is false where raw is none.
func arrayOf(raw schema.Value) (elements []schema.Value, ok bool) {
	return valueOf[[]schema.Value](raw)
}

// textOf returns the content of a string; ok is false where raw is none.
func textOf(raw schema.Value) (text string, ok bool) { return valueOf[string](raw) }

// valueOf reads raw, which is empty where a member is not there, as a T.
func valueOf[T any](raw schema.Value) (value T, ok bool) {
	if len(raw) == 0 {
		return value, false
	}
	decoded, err := schema.TypeOf[T]().Decode(raw)
	if err != nil {
		return value, false
	}
	return *decoded.(*T), true
}

// shown is how a value looks at a terminal: a string without its quotes, anything else as JSON. What would not be printed
// but obeyed by the terminal is escaped: the text may be anybody's.
func shown(raw schema.Value) string {
	if text, ok := textOf(raw); ok && !strings.ContainsFunc(text, obeyed) {
		return text
	}
	return escaped(string(raw))
}

func escaped(text string) string {
	if !strings.ContainsFunc(text, obeyed) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if obeyed(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// obeyed reports whether a terminal may do something else with r than draw it.
func obeyed(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }
