package emulator

import (
	"fmt"
	"strings"
)

// A program does not begin on an empty screen: what the terminal showed before is above it. Where the cursor is, the terminal says.

// Alternate reports whether the program uses the alternate screen.
func (s *Screen) Alternate() bool { return s.now == s.alt }

// Unknown returns the number of lines at the top of the screen whose content is not known.
func (s *Screen) Unknown() int {
	if s.now == s.alt {
		return 0
	}
	return s.unknown
}

// known takes all lines as known.
func (s *Screen) known() {
	if s.now == s.main {
		s.unknown = 0
	}
}

// Forget takes all of the main screen as not known, as after somebody else had the terminal. Below the cursor it takes it as blank.
func (s *Screen) Forget() {
	if s.now == s.alt {
		return
	}
	for _, line := range s.main.lines {
		clear(line)
	}
	s.unknown = s.at.row
}

// Align moves the main screen such that the cursor is in a row, where it is at the terminal. What is above it then is not known.
func (s *Screen) Align(row int) {
	by := min(max(row, 0), s.rows-1) - s.at.row
	if s.now == s.alt || by == 0 {
		return
	}
	top, last := s.top, s.last
	s.top, s.last = 0, s.rows-1
	pen := s.at.pen
	s.at.pen = style{}
	s.scroll(0, -by)
	s.at.pen, s.top, s.last = pen, top, last
	s.at.row += by
	if s.main.saved != nil {
		s.main.saved.row = min(max(s.main.saved.row+by, 0), s.rows-1)
	}
	if by > 0 {
		s.unknown += by
	}
}

// MakeRoom moves the main screen up by n lines, at most so many as are above the cursor, and returns what does it at the terminal, whose
// scrollback gets what was above.
func (s *Screen) MakeRoom(n int) string {
	n = min(n, s.at.row)
	if s.now == s.alt || n <= 0 || s.top != 0 || s.last != s.rows-1 || s.sides {
		return ""
	}
	text := fmt.Sprintf("\x1b[0m\x1b[%d;1H%s", s.rows, strings.Repeat("\n", n))
	before := s.at
	before.row -= n
	pen := s.at.pen
	s.at.pen = style{}
	s.scroll(0, n)
	s.at = before
	s.at.pen = pen
	if s.main.saved != nil {
		s.main.saved.row = max(s.main.saved.row-n, 0)
	}
	return text
}
