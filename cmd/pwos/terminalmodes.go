package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// terminalModes copies a program's output, and records which modes of the terminal the program has changed, such as the alternate
// screen, a hidden cursor or mouse reports, and whether it has asked the terminal something. A killed program neither resets the
// modes nor reads the answers.
type terminalModes struct {
	to      io.Writer
	changed map[int]bool // private modes (DEC) that differ from their default
	keys    int          // keyboard modes that were pushed and not popped (kitty protocol)
	part    []byte       // an incomplete control sequence
	command bool         // within an operating system command (OSC)

	asked    bool // a question that the terminal answers as if keys were pressed
	statuses int  // of these, ESC [ 5 n
}

// longestSequence bounds the buffered control sequence. A longer one changes no mode.
const longestSequence = 64

// Write copies p to the terminal, unchanged.
func (m *terminalModes) Write(p []byte) (int, error) {
	for _, b := range p {
		m.note(b)
	}
	return m.to.Write(p)
}

// note handles one byte. ESC [ begins a sequence; a byte from @ to ~ ends it.
func (m *terminalModes) note(b byte) {
	const escape, bell = 0x1b, 0x07
	switch {
	case b == escape:
		m.part, m.command = append(m.part[:0], b), false
	case m.command:
		m.asked = m.asked || b == '?'
		m.command = b != bell
	case len(m.part) == 1 && b == ']':
		m.part, m.command = m.part[:0], true
	case len(m.part) == 1 && (b == 'P' || b == '_' || b == 'Z'): // a device control string, a graphics command, and DECID
		m.part, m.asked = m.part[:0], true
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

// asks reports whether a sequence is a question: for the status or the cursor (n), what the terminal is (c, >q), a mode ($p), the
// window (t), the keyboard (?u, ?m), or its settings (x).
func asks(parameters string, final byte) bool {
	switch final {
	case 'n', 'c', 't', 'x':
		return true
	case 'q':
		return strings.HasPrefix(parameters, ">")
	case 'p':
		return strings.HasSuffix(parameters, "$")
	case 'u', 'm':
		return strings.HasPrefix(parameters, "?")
	}
	return false
}

// end handles a complete sequence.
func (m *terminalModes) end(parameters string, final byte) {
	m.asked = m.asked || asks(parameters, final)
	if final == 'n' && parameters == "5" {
		m.statuses++
	}
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

// usuallyOn reports whether a private mode is on by default: line wrapping (7) and the cursor (25).
func usuallyOn(mode int) bool { return mode == 7 || mode == 25 }

// undo resets the modes that the program left changed.
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

// lastAnswer bounds the wait for a terminal's answers. One that answers nothing costs this much.
const lastAnswer = time.Second

// drain reads the terminal's answers to what an ended program has asked, such as ESC [ 6 n, which the shell would take for
// keys. A terminal answers in the order of the questions, so drain asks a last one, and reads up to its answer. Keys that were
// pressed before that were meant for the program, and are lost; later ones are the shell's.
func (t *terminal) drain() {
	if !t.out.asked {
		return
	}
	if _, err := io.WriteString(t.own, "\x1b[5n"); err != nil {
		return // the terminal is closed
	}
	var read []byte
	buf, late := make([]byte, 256), time.Now().Add(lastAnswer)
	for answers := 0; answers <= t.out.statuses; answers = len(statusAnswer().FindAllIndex(read, -1)) {
		fds := []unix.PollFd{{Fd: int32(t.own.Fd()), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(time.Until(late).Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil || n == 0 || time.Now().After(late) || len(read) > 1<<16:
			return
		}
		if n, err = t.own.Read(buf); err != nil {
			return
		}
		read = append(read, buf[:n]...)
	}
}

// statusAnswer is a terminal's answer to ESC [ 5 n.
var statusAnswer = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\x1b\[[03]n`) })
