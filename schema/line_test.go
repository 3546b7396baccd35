package schema_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// TestLineReader checks the lines of texts for all sizes of reads (BRIDGE 4.2.2 #2 and #4, MESSAGE 4.3.2 #1-#4, MESSAGE 4.3.3 #4-#5, EVENT
// 4.3.2, EVENT 4.3.3 #4). A "!" means ErrLineTooLong.
func TestLineReader(t *testing.T) {
	t.Parallel()
	const limit = 8
	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", nil},
		{"one", "a\n", []string{"a"}},
		{"two", "a\nbc\n", []string{"a", "bc"}},
		{"no_final_newline", "a\nbc", []string{"a", "bc"}},
		{"carriage_return", "a\r\nb\r\n", []string{"a\r", "b\r"}},
		{"carriage_return_alone_is_no_end", "a\rb\n", []string{"a\rb"}},
		{"no_final_newline_but_carriage_return", "a\r", []string{"a\r"}},
		{"blank_lines", "\n\n \n\t\r\n\r\na\n\n  \nb\n\n", []string{"a", "b"}},
		{"blank_end", "a\n  ", []string{"a"}},
		{"only_blank", " \t\r\n\n\n ", nil},
		{"space_kept", "  a  \n", []string{"  a  "}},
		{"other_white_space_is_text", "\v\n\f\n\u00a0\n\x00\n", []string{"\v", "\f", "\u00a0", "\x00"}},
		{"any_bytes", "\xff\xfe\n\x80\n", []string{"\xff\xfe", "\x80"}},
		{"under_limit", "1234567\n", []string{"1234567"}},
		{"at_limit", "12345678\n", []string{"12345678"}},
		{"over_limit", "123456789\n", []string{"!"}},
		{"at_limit_no_newline", "12345678", []string{"12345678"}},
		{"over_limit_no_newline", "123456789", []string{"!"}},
		{"carriage_return_counts", "12345678\r\n1234567\r\n", []string{"!", "1234567\r"}},
		{"over_limit_first", "123456789\na\n", []string{"!", "a"}},
		{"over_limit_between", "a\n1234567890abcdefghijk\nb\n", []string{"a", "!", "b"}},
		{"over_limit_last", "a\n1234567890abcdefghijk\n", []string{"a", "!"}},
		{"over_limit_last_no_newline", "a\n1234567890abcdefghijk", []string{"a", "!"}},
		{"over_limit_twice", "123456789\n123456789\nb\n123456789", []string{"!", "!", "b", "!"}},
		{"blank_over_limit", "         \na\n", []string{"!", "a"}},
		{"blank_at_limit", "        \na\n", []string{"a"}},
		{"nothing_left_of_long", "123456789\n\n", []string{"!"}},
		{"rest_of_long_is_no_line", strings.Repeat("x", 100) + " a\nb", []string{"!", "b"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var want []outcome
			for _, s := range tc.want {
				if s == "!" {
					want = append(want, outcome{})
				} else {
					want = append(want, outcome{[]byte(s)})
				}
			}
			checkEachSource(t, tc.text, limit, want)
		})
	}
}

// TestLineReaderAtTheLimits checks the limits of the kernel to the byte (MESSAGE 4.3.2 #1, EVENT 4.3.2 #1, MESSAGE 9.2 #5, MESSAGE C
// #16).
func TestLineReaderAtTheLimits(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{schema.MaxLine, schema.MaxEventLine, 2*schema.MaxLine - 1, 2 * schema.MaxLine, 2*schema.MaxLine + 1} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			line := func(n int) string { return strings.Repeat("x", n-1) + "y" }
			text := strings.Join([]string{line(limit - 1), line(limit), line(limit + 1), "a", line(limit), line(2 * limit), "", line(limit)}, "\n")
			want := split([]byte(text), limit, io.EOF)
			if len(want) != 7 || want[2].line != nil || want[5].line != nil {
				t.Fatal("the model is wrong")
			}
			for kind, open := range sources([]byte(text), []int{4096, 1, 60_000}, io.EOF, false) {
				src, counter := open()
				checkLines(named{t, kind}, src, counter, limit, want, true)
			}
		})
	}
}

// TestLineReaderError checks that an error of the source is returned after the complete lines before it, drops an incomplete line, and
// is final.
func TestLineReaderError(t *testing.T) {
	t.Parallel()
	broken := errors.New("connection reset")
	for _, text := range []string{"", "a\n", "a\nb", "a\n\n", "123456789", "a\n123456789", "123456789\nb\nc"} {
		for _, end := range []error{broken, fmt.Errorf("read: %w", broken), io.ErrUnexpectedEOF} {
			for _, early := range []bool{false, true} {
				for _, sizes := range [][]int{nil, {1}, {0, 2}} {
					for kind, open := range sources([]byte(text), sizes, end, early) {
						src, counter := open()
						checkLines(named{t, kind}, src, counter, 8, split([]byte(text), 8, end), true)
					}
				}
			}
		}
	}
}

// TestLineReadersDoNotDisturbEachOther checks that a line is valid until the next call, although readers share a pool of buffers.
func TestLineReadersDoNotDisturbEachOther(t *testing.T) {
	t.Parallel()
	const readers, lines = 4, 200
	held := make([][]byte, readers)
	var all []*schema.LineReader
	text := func(r, n int) []byte { return bytes.Repeat([]byte{byte('a' + r)}, 1+(n*n*37+r*11)%9000) }
	for r := range readers {
		var input []byte
		for n := range lines {
			input = append(append(input, text(r, n)...), '\n')
		}
		kind := []string{"reader", "filler"}[r%2]
		src, _ := sources(input, []int{9001, 1, 17_000}, io.EOF, false)[kind]()
		all = append(all, schema.NewLineReader(src, schema.MaxLine))
	}
	for n := range lines {
		for r, reader := range all {
			line, err := reader.Next()
			testkit.Must(t, err)
			held[r] = line
			for other, line := range held {
				if line == nil {
					continue
				}
				at := n
				if other > r {
					at = n - 1
				}
				if !bytes.Equal(line, text(other, at)) {
					t.Fatalf("line %d of reader %d changed while reader %d read", at, other, r)
				}
			}
		}
	}
}

// TestLastLineStays checks that a last line without a line break is valid until the next call, even if it fills its buffer.
func TestLastLineStays(t *testing.T) {
	t.Parallel()
	for range 100 {
		first := schema.NewLineReader(strings.NewReader("first"), schema.MaxLine)
		line, err := first.Next()
		testkit.Must(t, err)
		second := schema.NewLineReader(strings.NewReader("other\nother"), schema.MaxLine)
		for range 3 {
			if _, err = second.Next(); string(line) != "first" {
				t.Fatalf("the line became %s", line)
			}
		}
		if err != io.EOF {
			t.Fatal(err)
		}
	}
}
