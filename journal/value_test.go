package journal_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
)

// takes reports whether an entry may have a value.
func takes(value string) bool {
	e := journal.Entry{Request: []byte(value)}
	return e.Check() == nil
}

func TestValues(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for value, want := range map[string]bool{
		`null`: true, `true`: true, `false`: true, `0`: true, `-0`: true, `10.5E-07`: true, `""`: true,
		`{}`: true, `[]`: true,
		`{ "a" : [ 1 , 2 ] }`: true, "[\t\r]": true, `"\"\\\/\b\f\n\r\t\u00e9\uD800"`: true, `"é` + "\x7f" + `"`: true,
		deep(129): true, deep(130): false,
		``: false, ` 1`: false, `1 `: false, `1 2`: false, `nul`: false, `True`: false, `nulll`: false,
		`01`: false, `-`: false, `1.`: false, `.5`: false, `1e`: false, `1e+`: false, `+1`: false, `0x1`: false, `NaN`: false,
		`"`: false, `"\`: false, `"\x"`: false, `"\u12"`: false, `"\u12g4"`: false, `"\u00` + "\x10" + `0"`: false,
		"\"\n\"": false, "\"\x00\"": false, "\"\xff\"": false, "\"\xc3\"": false, "\"\xed\xa0\x80\"": false,
		"[\n]": false, "{\n}": false, "[1,\n2]": false, `[`: false, `]`: false, `[1`: false, `[1,]`: false, `[,]`: false,
		`[1 2]`: false,
		`{`:     false, `{"a"`: false, `{"a":`: false, `{"a":1`: false, `{"a":1,}`: false, `{"a" 1}`: false,
		`{a:1}`: false, `{1:1}`: false,
		`{"a":1]`: false, `[1}`: false, `'a'`: false, `// 1`: false,
	} {
		if takes(value) != want {
			t.Errorf("%q: taken %v, want %v", value, !want, want)
		}
	}
}

func TestCheckBoundsTheLine(t *testing.T) {
	t.Parallel()
	text := `"` + strings.Repeat("x", journal.MaxLine/2-600) + `"`
	e := journal.Entry{Request: []byte(text), Outcome: []byte(text)}
	testkit.Must(t, e.Check())
	for name, e := range map[string]journal.Entry{
		"outcome": {Request: []byte(text), Outcome: []byte(text[:len(text)-1] + strings.Repeat("x", 1000) + `"`)},
		"origin":  {Request: []byte(text), Origin: strings.Repeat("\x00", journal.MaxLine/12+100)},
		"conn":    {Request: []byte(text), Conn: strings.Repeat("\x00", journal.MaxLine/12+100)},
		"invalid": {Outcome: []byte("x")},
	} {
		if e.Check() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// The scanner and the standard library agree on JSON, except for the additional limits of entries.
func FuzzValue(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,-2.5e+9,"\ud83d\ude00",true,false,null,{}]}`, `"\u00`, `[[[]]]`, `-0.0`, "\"\xff\"",
		"{\"a\"\r:\t1 }", `1e5`, "[\n]",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got := takes(string(b))
		want := json.Valid(b) && utf8.Valid(b) && bytes.IndexByte(b, '\n') < 0 && len(bytes.Trim(b, " \t\r")) == len(b)
		if got != want && (got || depth(b) <= 128) {
			t.Fatalf("%q: taken %v, want %v", b, got, want)
		}
	})
}

func depth(b []byte) int {
	return bytes.Count(b, []byte("[")) + bytes.Count(b, []byte("{"))
}

// quoted returns e with Origin and Conn escaped, for line.
func quoted(e *journal.Entry) *journal.Entry {
	q := *e
	q.Origin, q.Conn = escape(e.Origin), escape(e.Conn)
	return &q
}

func escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ':
			b.WriteString(`\u00`)
			b.WriteByte("01"[r>>4])
			b.WriteByte("0123456789abcdef"[r&15])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
