// Package examples holds conversations with a kernel, for people to read or for programs to have.
package examples

import (
	_ "embed"
	"strings"
)

//go:embed session.ndjson
var sessionLines string

//go:embed session.txt
var captions string

// Frame is one line of a conversation, with what it shows.
type Frame struct {
	Line    string // without its '\n'
	Caption string
}

// Session returns session.ndjson line by line, each with its line of session.txt.
func Session() []Frame {
	said := strings.Split(strings.TrimSuffix(captions, "\n"), "\n")
	var frames []Frame
	for i, line := range strings.Split(strings.TrimSuffix(sessionLines, "\n"), "\n") {
		f := Frame{Line: line}
		if i < len(said) {
			f.Caption = said[i]
		}
		frames = append(frames, f)
	}
	return frames
}
