package view

import (
	"bytes"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/promptware-os/pwos/schema/quote"
)

// DiffWriter writes a diff, as git prints it, to a terminal: highlighted as git does, and with control characters escaped, except for tabs.
// Close writes a last line without a line end.
type DiffWriter struct {
	To    io.Writer
	Paint Paint

	half     []byte // an incomplete line
	old, new int    // lines that the present hunk still has of each side
}

// Write implements io.Writer.
func (w *DiffWriter) Write(p []byte) (int, error) {
	w.half = append(w.half, p...)
	var out []byte
	for {
		line, rest, whole := bytes.Cut(w.half, []byte("\n"))
		if !whole {
			break
		}
		out = append(append(out, w.line(string(line))...), '\n')
		w.half = rest
	}
	w.half = bytes.Clone(w.half)
	if _, err := w.To.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close implements io.Closer.
func (w *DiffWriter) Close() error {
	if len(w.half) == 0 {
		return nil
	}
	_, err := io.WriteString(w.To, w.line(string(w.half)))
	w.half = nil
	return err
}

// hunkHead matches the first line of a hunk: the numbers of lines of each side, and what follows.
var hunkHead = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@)(.*)$`)
})

// line returns a line escaped and highlighted. What a line of a hunk begins with says which side has it; any other line is a header, even
// if it begins so.
func (w *DiffWriter) line(line string) string {
	text := quoted(line)
	if w.old > 0 || w.new > 0 {
		switch {
		case strings.HasPrefix(line, "+"):
			w.new--
			return w.Paint(Good, text)
		case strings.HasPrefix(line, "-"):
			w.old--
			return w.Paint(Bad, text)
		case strings.HasPrefix(line, " ") || line == "":
			w.old, w.new = w.old-1, w.new-1
		}
		return text
	}
	if head := hunkHead().FindStringSubmatch(line); head != nil {
		w.old, w.new = lines(head[2]), lines(head[3])
		return w.Paint(Place, head[1]) + quoted(head[4])
	}
	if strings.HasPrefix(line, `\`) || line == "" { // no line end at the end of a file
		return text
	}
	return w.Paint(Bold, text)
}

// lines returns the number of lines in the head of a hunk.
func lines(text string) int {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	return 1 // it is left out
}

// quoted returns text with control characters escaped, except for tabs.
func quoted(text string) string {
	parts := strings.Split(strings.ToValidUTF8(text, "\uFFFD"), "\t")
	for i := range parts {
		parts[i] = quote.Text(parts[i])
	}
	return strings.Join(parts, "\t")
}
