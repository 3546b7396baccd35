package main

import (
	"io"
	"unicode/utf8"
)

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
