package emulator_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/cmd/pwos/internal/emulator"
)

// pieces are parts of output of programs.
var pieces = []string{
	"a", "some words", "\r", "\n", "\r\n", "\b", "\t", "漢字", "é", "e\u0301", "│", "\x1b[H", "\x1b[5;9H", "\x1b[3d", "\x1b[7G", "\x1b[2A", "\x1b[3B", "\x1b[2C", "\x1b[4D",
	"\x1b[J", "\x1b[1J", "\x1b[2J", "\x1b[K", "\x1b[1K", "\x1b[2K", "\x1b[2X", "\x1b[2@", "\x1b[3P", "\x1b[L", "\x1b[2M", "\x1b[S", "\x1b[T", "\x1b[2;6r", "\x1b[r",
	"\x1b7", "\x1b8", "\x1bM", "\x1bD", "\x1bE", "\x1b[31m", "\x1b[0m", "\x1b]0;title\x07", "\x1b]8;;http://a\x1b\\", "\x1b]8;;\x07", "\x1b[?1049h", "\x1b[?1049l", "\x1b[?25l",
	"\x1b[?2004h", "a long line that goes on to the end", "\x1b[4h", "\x1b[4l", "\x1b[?6h", "\x1b[?6l", "\x1b(0", "\x1b(B", "qqx", "\x0e", "\x0f", "\x1b[44m", "\x1b[38;2;1;2;3;4:3m",
	"\x1b[?69h", "\x1b[3;9s", "\x1b[?69l", "\x1b%@", "\x1b(A", "\u009b2C", "\u0085", "\u009d0;t\u009c", "\xc2",
	"12345678901234567890", "\x1b[?7l", "\x1b[?7h", "\x1b[!p", "\x1b", "\x1b[", "\xe6", "\x18", "\x1bP1$q", "\x1b\\", "\x1b[999999999999999999;9H", "\x1b[?u", "\x1b[>1u",
}

func lines(s *emulator.Screen) (lines []string) {
	_, rows := s.Size()
	for row := range rows {
		lines = append(lines, s.Text(row))
	}
	return lines
}

func after(text string) *emulator.Screen {
	s := emulator.New(20, 4)
	_, _ = s.Write([]byte(text))
	return s
}

// TestShown has what a terminal shows.
func TestShown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{"a\r\nb", "a|b"},
		{"1\r\n2\r\n3\r\n4\r\n5", "2|3|4|5"},
		{"12345678901234567890", "12345678901234567890"},
		{"12345678901234567890a", "12345678901234567890|a"},
		{"12345678901234567890\ra", "a2345678901234567890"},
		{"1234567890123456789漢", "1234567890123456789|漢"},
		{"\x1b[?7l1234567890123456789漢012", "1234567890123456789" + "2"},
		{"漢字\x1b[2Ga", " a字"},
		{"e\u0301x", "e\u0301x"},
		{"abc\x1b[2G\x1b[2@", "a  bc"},
		{"abc\x1b[2G\x1b[P", "ac"},
		{"abc\x1b[2G\x1b[1K", "  c"},
		{"a\r\nb\r\nc\x1b[2H\x1b[L", "a||b|c"},
		{"a\r\nb\r\nc\x1b[2H\x1b[M", "a|c"},
		{"a\r\nb\r\nc\r\nd\x1b[2;3r\x1b[3H\n", "a|c||d"},
		{"a\r\nb\x1b[H\x1bM", "|a|b"},
		{"a\x1b[?1049hb\x1b[H", " b"},
		{"a\x1b[?1049hb\x1b[?1049lc", "ac"},
		{"\x1b(0qx\x1b(Bq", "─│q"},
		{"\x1b)0q\x0eq\x0fq", "q─q"},
		{"\x1b[4hab\x1b[Gc", "cab"},
		{"ab\x1b[3b", "abbbb"},
		{"a\x1b]0;title\x1b\\b\x1b]2;t\x07c", "abc"},
		{"a\x1b]0;tit\x1b[2Gb", "ab"},
		{"a\x1b[3\x18b\xffc\xe6c", "ab\ufffdc\ufffdc"},
		{"a\x1bP1;2|data\x1b\\b\x1b_Gdata\x1b\\c", "abc"},
		{"a\x1b[>4;2mb\x1b[=1;1uc\x1b[?ud\x1b[18te", "abcde"},
		{"abc\x1bcd", "d"},
		{"\x1b[2;3r\x1b[?6ha\x1b[2Hb", "|a|b"},
		{"\ta\x1b[Zb", "        b"},
		{"a\u009b2Cb\u0085c\u008dd", "ad b|c"},
		{"a\u009d0;title\u009cb\u009dti\xe2\x9ctle\u009cc\x1b]8;;x\u009cd\u0090q\x07e\u009cf", "abcdf"},
		{"a\x1b_G\x07b\x1b\\c\x1b[\u009bd", "ac"},
		{"ab\x1b[s\x1b[?69h\x1b[2;9sc\x1b[ud\x1b[?69l\x1b[2H\x1b[se\x1b[uf", "cbd|f"},
	} {
		if got := strings.TrimRight(strings.Join(lines(after(tt.text)), "|"), "|"); got != tt.want {
			t.Errorf("%q shows %q, want %q", tt.text, got, tt.want)
		}
	}
}

// TestStyle: what draws a line draws it in its colours.
func TestStyle(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a\x1b[1;31mb\x1b[22;39mc":         "a\x1b[0;1;31mb\x1b[0mc",
		"\x1b[38;5;200;48;2;1;2;3ma":       "\x1b[0;38;5;200;48;2;1;2;3ma",
		"\x1b[38:2::1:2:3;4:3;58:5:9ma":    "\x1b[0;4:3;38;2;1;2;3;58;5;9ma",
		"\x1b[93;104;7;53ma\x1b[27;55;24m": "\x1b[0;7;53;93;104ma",
		"\x1b[41m\x1b[3X":                  "\x1b[0;41m   ",
		"\x1b[38;2ma":                      "a",
	} {
		if got := after(text).Line(0); got != "\x1b[0m\x1b[2K"+want {
			t.Errorf("%q is drawn as %q, want %q", text, got, want)
		}
	}
}

// TestDrawnOver: after something was drawn over the screen, the lines below it are drawn again, and the program goes on as if nothing
// had happened, whatever it has written before and writes then.
func TestDrawnOver(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5000) {
		random := rand.New(rand.NewPCG(1, seed))
		some := func() (text string) {
			for range random.IntN(14) {
				text += pieces[random.IntN(len(pieces))]
			}
			return text
		}
		// A program restores what it has saved.
		first, then := "\x1b7"+strings.ReplaceAll(some(), "1049", "2004"), strings.ReplaceAll(some(), "1049", "2004")
		if seed%2 == 0 {
			first, then = strings.ReplaceAll(some(), "\x1b8", ""), strings.ReplaceAll(some(), "\x1b8", "")
		}
		s := emulator.New(20, 8)
		_, _ = s.Write([]byte(first))
		if s.Cut() {
			continue
		}
		// The terminal gets what the program writes, and what is drawn between.
		terminal := emulator.New(20, 8)
		_, _ = terminal.Write([]byte(first))
		_, _ = terminal.Write([]byte(s.Begin() + "\x1b[2;1H\x1b[0mover\x1b[3;1H" + strings.Repeat("漢", 10) + s.End()))
		text := s.Begin()
		for row := 1; row < 3; row++ {
			text += fmt.Sprintf("\x1b[%d;1H", row+1) + s.Line(row)
		}
		_, _ = terminal.Write([]byte(text + s.End()))
		for _, text := range []string{"", then} {
			_, _ = s.Write([]byte(text))
			_, _ = terminal.Write([]byte(text))
			if a, b := lines(s), lines(terminal); fmt.Sprint(a) != fmt.Sprint(b) || s.Cursor() != terminal.Cursor() || s.Line(s.Cursor()) != terminal.Line(s.Cursor()) {
				t.Fatalf("after %q, and %q:\n%q at %d\n%q at %d", first, text, a, s.Cursor(), b, terminal.Cursor())
			}
		}
	}
}

// TestWhole: what a program writes is cut where something else may be drawn.
func TestWhole(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "ab": "ab", "ab\x1b": "ab", "ab\x1b[3": "ab", "ab\x1b[31m": "ab\x1b[31m", "a\x1b]0;t": "a", "a\x1b]0;t\x07b\xe6": "a\x1b]0;t\x07b", "漢\xe6\xbc": "漢", "\x1b[?1": "",
	} {
		s := after("some\r\n")
		_, _ = s.Write([]byte(text))
		if got := text[:s.Whole()]; got != want || s.Cut() != (got != text) {
			t.Errorf("of %q %q is whole, want %q", text, got, want)
		}
	}
	s := after("\x1b[3")
	if _, _ = s.Write([]byte("1")); s.Whole() != 0 {
		t.Errorf("within a sequence %d bytes are whole", s.Whole())
	}
}

// TestResize: lines above the cursor go first.
func TestResize(t *testing.T) {
	t.Parallel()
	s := after("1\r\n漢字\r\n3\r\n4")
	s.Resize(3, 2)
	if got := strings.Join(lines(s), "|"); got != "3|4" || s.Cursor() != 1 {
		t.Errorf("%q at %d", got, s.Cursor())
	}
	s.Resize(30, 5)
	if got := strings.Join(lines(s), "|"); got != "3|4|||" || s.Cursor() != 1 {
		t.Errorf("%q at %d", got, s.Cursor())
	}
	s.Resize(0, 0)
	_, _ = s.Write([]byte("漢字abc\n"))
}

func FuzzWrite(f *testing.F) {
	f.Add([]byte("\x1b[2;3r\x1b[9999L漢\x1b[5M\x1b8"), uint8(3), uint8(2))
	f.Fuzz(func(_ *testing.T, text []byte, cols, rows uint8) {
		s := emulator.New(int(cols), int(rows))
		half := len(text) / 2
		_, _ = s.Write(text[:half])
		s.Resize(int(rows), int(cols))
		_, _ = s.Write(text[half:])
		_ = s.Begin() + s.Line(s.Cursor()) + s.End()
	})
}

func BenchmarkLines(b *testing.B) {
	var text strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&text, "%d some text of a build that says things\r\n", i)
	}
	s := emulator.New(80, 24)
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		_, _ = s.Write([]byte(text.String()))
	}
}

// TestAsked: what a terminal answers is counted as it answers, however the request is written.
func TestAsked(t *testing.T) {
	t.Parallel()
	s := emulator.New(80, 24)
	if _, err := s.Write([]byte("\x1b[5n\x1b[05n\x1b[5;0n\x1b[?5n\x1b[6n\x1b[06n\x1b[n")); err != nil {
		t.Fatal(err)
	}
	if got := s.Asked(); got != (emulator.Requests{Status: 3, Cursor: 2}) {
		t.Errorf("asked %+v", got)
	}
}
