package view

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/promptware-os/pwos/schema"
)

// Look is how a piece of text stands out at a terminal: an SGR parameter.
type Look string

// The looks that there are.
const (
	Bold  Look = "1"
	Faint Look = "2"
	Bad   Look = "31"
	Good  Look = "32"
)

// Paint makes text look so; where nothing is to stand out it returns the text as it is.
type Paint func(l Look, text string) string

// leastRoom is how many characters a text needs beside what stands before it: in less it is not broken, but runs on.
const leastRoom = 24

// Hang writes text behind lead, in lines of at most width characters that are broken between words; those after the first
// begin below the text. A word that no line has room for runs on, so that it can be copied. Of width 0 there is one line.
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
		case at+1+long > width && long <= width-indent: // else it is too long for any line
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

// Brisk is a latency with three digits or so.
func Brisk(d time.Duration) string { return d.Round(100 * time.Nanosecond).String() }

// ShellLine is words as a shell reads them back.
func ShellLine(words []string) string {
	line := make([]string, len(words))
	for i, word := range words {
		line[i] = Quoted(word)
	}
	return strings.Join(line, " ")
}

// Quoted is a word as a shell reads it back.
func Quoted(word string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=,:@%+", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !safe(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// PlainWriter shows anybody's text at a terminal: what the terminal would obey instead of drawing it is escaped, line ends
// and tabs aside.
type PlainWriter struct {
	To   io.Writer
	half []byte // the beginning of a character whose end has not come yet
}

// Write writes all of p that is whole characters; it returns len(p) where that could be written.
func (w *PlainWriter) Write(p []byte) (int, error) {
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
			out = append(out, Escaped(string(r))...)
		default: // bytes that are no character become the sign for that
			out = utf8.AppendRune(out, r)
		}
		text = text[size:]
	}
	if _, err := w.To.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Shown is how a value looks at a terminal: a string without its quotes, anything else as JSON. What would not be printed
// but obeyed by the terminal is escaped: the text may be anybody's.
func Shown(raw schema.Value) string {
	if text, ok := Text(raw); ok && !strings.ContainsFunc(text, obeyed) {
		return text
	}
	return Escaped(string(raw))
}

// Escaped is text in which what a terminal would obey is written as JSON escapes it.
func Escaped(text string) string {
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

// obeyed reports whether a terminal may do something else with r than draw it in its place: control and format
// characters, and separators of lines.
func obeyed(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }

// shortened is text of at most so many characters.
func shortened(text string, most int) string {
	runes := []rune(text)
	if len(runes) > most {
		runes = append(runes[:most-3], []rune("...")...)
	}
	return string(runes)
}

// Deref is what p points to, or zero.
func Deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Ordinal is a count of times in words: first, second, 12th.
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
