package view

import (
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/quote"
)

// Look is the style of text at a terminal: an SGR parameter.
type Look string

// Looks.
const (
	Bold  Look = "1"
	Faint Look = "2"
	Bad   Look = "31"
	Good  Look = "32"
	Place Look = "36"
)

// Paint applies a Look to text, or returns it unchanged if there is no highlighting.
type Paint func(l Look, text string) string

// leastRoom is the minimum width of wrapped text; narrower text is not wrapped.
const leastRoom = 24

// Hang writes text after lead, wrapped between words to lines of at most width characters, with a hanging indent. A
// word that is longer than a line is not broken, so that it can be copied. Width 0 means no wrapping.
func Hang(lead, text string, width int) string {
	indent := utf8.RuneCountInString(lead)
	if width == 0 || width-indent < leastRoom {
		return lead + text
	}
	var b strings.Builder
	b.WriteString(lead)
	at := indent
	for i, word := range strings.Split(text, " ") {
		long := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case at+1+long > width && long <= width-indent: // otherwise it is too long for any line
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += long
	}
	return b.String()
}

func microseconds(n int64) string { return (time.Duration(n) * time.Microsecond).String() }

// Brisk formats a latency, rounded to 100 ns.
func Brisk(d time.Duration) string { return d.Round(100 * time.Nanosecond).String() }

// PlainWriter writes the output of a program to a terminal. It escapes control characters except line ends and tabs, and
// changes nothing else. What a program wrote to a terminal has CR LF as line ends.
type PlainWriter struct {
	To   io.Writer
	half []byte // first bytes of an incomplete character, or of a line end
}

// Write writes the complete characters of p. It returns len(p) on success.
func (w *PlainWriter) Write(p []byte) (int, error) {
	text := append(w.half, p...)
	w.half = nil
	var out []byte
	for len(text) > 0 {
		if !utf8.FullRune(text) || len(text) == 1 && text[0] == '\r' {
			w.half = append(w.half, text...)
			break
		}
		r, size := utf8.DecodeRune(text)
		switch {
		case r == '\r' && text[1] == '\n':
		case r == '\n' || r == '\t':
			out = append(out, byte(r))
		case quote.Control(r):
			out = append(out, quote.Rune(r)...)
		default: // invalid bytes become U+FFFD
			out = utf8.AppendRune(out, r)
		}
		text = text[size:]
	}
	if _, err := w.To.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Shown formats a value for a terminal: a string without its quotes, anything else as JSON. Control characters are
// escaped, since the text is untrusted.
func Shown(raw schema.Value) string {
	if text, ok := Text(raw); ok && !strings.ContainsFunc(text, quote.Control) {
		return quote.Text(text)
	}
	return quote.JSON(string(raw))
}

// Escaped is quote.Text, for text that an agent may have chosen. Raw JSON takes quote.JSON.
func Escaped(text string) string { return quote.Text(text) }

// shortened returns text cut to at most that many characters.
func shortened(text string, most int) string {
	runes := []rune(text)
	if len(runes) > most {
		runes = append(runes[:most-3], []rune("...")...)
	}
	return string(runes)
}

// Deref returns *p, or the zero value if p is nil.
func Deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Ordinal formats a number as an ordinal: first, second, 12th.
func Ordinal(n int64) string {
	switch {
	case n == 1:
		return "first"
	case n == 2:
		return "second"
	case n == 3:
		return "third"
	case n/10%10 != 1 && n%10 >= 1 && n%10 <= 3:
		return strconv.FormatInt(n, 10) + []string{"st", "nd", "rd"}[n%10-1]
	}
	return strconv.FormatInt(n, 10) + "th"
}
