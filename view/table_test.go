package view_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/view"
)

func TestTable(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{}`:                          "",
		`[]`:                          "",
		`{"keys":[]}`:                 "",
		`null`:                        "null\n",
		`"text"`:                      "text\n",
		`12345678901234567890`:        "12345678901234567890\n",
		`{"b":"x y","a":[1,2],"ü":1}`: "a  [1,2]\nb  x y\nü  1\n",
		`{"keys":["/a","/b"]}`:        "/a\n/b\n",
		`[{"pid":10,"name":"x"},{"pid":7,"state":{"a":1}}]`: "NAME  PID  STATE\nx     10\n      7    {\"a\":1}\n",
		`[1,{"a":2}]`: "1\n{\"a\":2}\n",
	} {
		if got := view.TableOf([]byte(raw)).Text(); got != want {
			t.Errorf("%s is shown as %q, want %q", raw, got, want)
		}
	}
}

// TestShown: control characters are escaped.
func TestShown(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`"plain \"text\""`:         `plain "text"`,
		`"\u001b[2J"`:              `"\u001b[2J"`,
		"\"\u009b2J\"":             `"\u009b2J"`,
		"\"abc\u202edef\"":         `"abc\u202edef"`,
		"{\"a\":\"\u007f\u0085\"}": `{"a":"\u007f\u0085"}`,
	} {
		if got := view.Shown([]byte(raw)); got != want {
			t.Errorf("%s is shown as %q, want %q", raw, got, want)
		}
	}
}

// TestNarrow: columns are dropped only if the table is too wide.
func TestNarrow(t *testing.T) {
	t.Parallel()
	head := []string{"pid", "priority", "birth tick", "command"}
	rows := [][]string{{"1", "NORMAL", "0", "sh agent.sh"}, {"2", "HIGH", "7", ""}}
	const full = 3 + 2 + 8 + 2 + 10 + 2 + 11 // its width
	for width, want := range map[int]string{
		0:        "pid priority birth tick command",
		full:     "pid priority birth tick command",
		full - 1: "pid command",
		1:        "pid command",
	} {
		gotHead, gotRows := narrowed(width, head, slices.Clone(rows), "priority", "birth tick")
		if got := strings.Join(gotHead, " "); got != want || len(gotRows[0]) != len(gotHead) || gotRows[0][len(gotHead)-1] != "sh agent.sh" {
			t.Errorf("at %d: %q, %q, want %q", width, got, gotRows, want)
		}
	}
	if gotHead, _ := narrowed(1, head, nil, "pid"); len(gotHead) != len(head) {
		t.Errorf("an empty table lost a column: %q", gotHead)
	}
}

// TestHang: text is wrapped between words with a hanging indent; in too little room it is not wrapped.
func TestHang(t *testing.T) {
	t.Parallel()
	const text = "one two three four five six seven eight"
	for _, c := range []struct {
		name, lead, text string
		width            int
		want             string
	}{
		{"no terminal", "a  ", text, 0, "a  " + text},
		{"it fits", "a  ", text, 42, "a  " + text},
		{"one too narrow", "a  ", text, 41, "a  one two three four five six seven\n   eight"},
		{"several lines", "ü  ", text, 28, "ü  one two three four five\n   six seven eight"},
		{"too little room", "a  ", text, 26, "a  " + text},
		{"a long word stays whole", "", "see /a/path/that/is/longer/than/the/line now", 24, "see /a/path/that/is/longer/than/the/line\nnow"},
		{"a long word alone", "", "/a/path/that/is/longer/than/the/line", 24, "/a/path/that/is/longer/than/the/line"},
		{"nothing", "a  ", "", 40, "a  "},
	} {
		if got := view.Hang(c.lead, c.text, c.width); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestPlain: control characters are escaped, also if a write ends inside a character.
func TestPlain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pieces []string
		want   string
	}{
		{[]string{"a line\n\tand"}, "a line\n\tand"},
		{[]string{"\x1b[2J", "\r\x07"}, `\u001b[2J\u000d\u0007`},
		{[]string{"a\r\nb\r", "\nc\rd\r", "\x1b"}, `a` + "\n" + `b` + "\n" + `c\u000dd\u000d\u001b`},
		{[]string{"gr\xc3", "\xbcn"}, "grün"},
		{[]string{"\xe2\x80", "\xae", "x"}, `\u202ex`},
		{[]string{"\xff!"}, "\ufffd!"},
		{[]string{"", ""}, ""},
	} {
		if got, err := plain(tt.pieces...); got != tt.want || err != nil {
			t.Errorf("%q is shown as %q, %v, want %q", tt.pieces, got, err, tt.want)
		}
	}
}

// narrowed returns the header and the rows of a table after Narrow.
func narrowed(width int, head []string, rows [][]string, names ...string) ([]string, [][]string) {
	t := view.Table{Head: head, Rows: rows}
	t.Narrow(width, names...)
	return t.Head, t.Rows
}

// plain returns the output of a PlainWriter for these writes.
func plain(pieces ...string) (string, error) {
	var b strings.Builder
	w := &view.PlainWriter{To: &b}
	for _, piece := range pieces {
		if _, err := w.Write([]byte(piece)); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}
