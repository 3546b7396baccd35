// Package strayframe finds a frame of the protocol in the output of a program, where nobody answers it.
package strayframe

import (
	"bytes"

	"github.com/promptware-os/pwos/schema"
)

// Advice says what to do about a stray frame.
const Advice = `the program writes messages of the protocol to its output, where nobody answers: its channel is descriptor 3; with "pwos run --channel stdio" it is standard input and output`

// longest is the longest line that is looked at, in bytes.
const longest = 16 << 10

// Finder finds the first frame in an output that is written to it. A frame is a line of its own.
type Finder struct {
	line  []byte // the beginning of an incomplete line that may be a frame
	other bool   // the incomplete line is none
	found bool
}

// Find looks at more of the output. It reports true once: for the part in which the first frame ends.
func (f *Finder) Find(part []byte) bool {
	for len(part) > 0 && !f.found {
		line, rest, ended := bytes.Cut(part, []byte{'\n'})
		part = rest
		f.other = f.other || len(f.line)+len(line) > longest || len(f.line) == 0 && len(line) > 0 && line[0] != '{'
		switch {
		case !ended && f.other:
			f.line = nil
		case !ended:
			f.line = append(f.line, line...)
		default:
			f.found = !f.other && isFrame(append(f.line, line...))
			f.line, f.other = nil, false
			if f.found {
				return true
			}
		}
	}
	return false
}

// isFrame reports whether a line is an OsMessage.
func isFrame(line []byte) bool {
	if !bytes.HasPrefix(line, []byte{'{'}) || !bytes.Contains(line, []byte(`"kind"`)) {
		return false
	}
	m, invalid := schema.Decode(bytes.TrimSuffix(line, []byte{'\r'}), schema.OsMessage) // a terminal ends lines with both
	return invalid == nil && m.Dialect == schema.OsMessage
}
