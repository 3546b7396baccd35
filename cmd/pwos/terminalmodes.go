package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// terminalModes passes on what a program prints at a terminal, and notes which modes of the terminal it has changed: the other
// screen, a hidden cursor, reports of the mouse. A program that was killed leaves them behind.
type terminalModes struct {
	to      io.Writer
	changed map[int]bool // private modes (DEC) that are not as usual
	keys    int          // reports of keys that were asked for and not taken back (the protocol of kitty)
	part    []byte       // of a control sequence that has not ended yet
}

// longestSequence bounds what is kept of a control sequence; longer ones change no mode.
const longestSequence = 64

// Write writes p as it is.
func (m *terminalModes) Write(p []byte) (int, error) {
	for _, b := range p {
		m.note(b)
	}
	return m.to.Write(p)
}

// note takes one byte: ESC [ begins a sequence, a byte from @ to ~ ends it.
func (m *terminalModes) note(b byte) {
	const escape = 0x1b
	switch {
	case b == escape:
		m.part = append(m.part[:0], b)
	case len(m.part) == 0:
	case len(m.part) == 1 && b != '[', b < ' ', len(m.part) == longestSequence:
		m.part = m.part[:0]
	case len(m.part) > 1 && b >= '@' && b <= '~':
		m.end(string(m.part[2:]), b)
		m.part = m.part[:0]
	default:
		m.part = append(m.part, b)
	}
}

// end takes a sequence.
func (m *terminalModes) end(parameters string, final byte) {
	if private, ok := strings.CutPrefix(parameters, "?"); ok && (final == 'h' || final == 'l') {
		for text := range strings.SplitSeq(private, ";") {
			mode, err := strconv.Atoi(text)
			switch {
			case err != nil:
			case (final == 'h') == usuallyOn(mode):
				delete(m.changed, mode)
			default:
				if m.changed == nil {
					m.changed = make(map[int]bool)
				}
				m.changed[mode] = true
			}
		}
		return
	}
	if final != 'u' || parameters == "" {
		return
	}
	switch parameters[0] {
	case '>':
		m.keys++
	case '<':
		n, err := strconv.Atoi(parameters[1:])
		if err != nil {
			n = 1
		}
		m.keys = max(0, m.keys-n)
	}
}

// usuallyOn reports whether a private mode is on in a terminal that nobody has changed: wrapping of lines, the cursor.
func usuallyOn(mode int) bool { return mode == 7 || mode == 25 }

// undo changes the modes back that the program has not.
func (m *terminalModes) undo() error {
	var b bytes.Buffer
	if m.keys > 0 {
		fmt.Fprintf(&b, "\x1b[<%du", m.keys)
	}
	for _, mode := range slices.Sorted(maps.Keys(m.changed)) {
		final := 'l'
		if usuallyOn(mode) {
			final = 'h'
		}
		fmt.Fprintf(&b, "\x1b[?%d%c", mode, final)
	}
	if b.Len() == 0 {
		return nil
	}
	b.WriteString("\x1b[0m") // colours
	m.changed, m.keys = nil, 0
	_, err := m.to.Write(b.Bytes())
	return err
}
