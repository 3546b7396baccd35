package emulator

import (
	"cmp"
	"fmt"
	"strings"
)

// Resize changes the size, about as terminals do: lines above the cursor go first.
func (s *Screen) Resize(cols, rows int) {
	cols, rows = max(cols, 1), max(rows, 1)
	gone := max(s.at.row-rows+1, 0)
	for _, b := range []*buffer{s.main, s.alt} {
		b.lines = b.lines[gone:]
		b.lines = b.lines[:min(len(b.lines), rows)]
		for i, line := range b.lines {
			wider := blank(cols, style{})
			copy(wider, line)
			split(line, min(cols, len(line)))
			if last := &wider[cols-1]; last.width == 2 {
				*last = cell{style: last.style}
			}
			b.lines[i] = wider
		}
		for len(b.lines) < rows {
			b.lines = append(b.lines, blank(cols, style{}))
		}
	}
	s.cols, s.rows, s.top, s.last, s.left, s.right = cols, rows, 0, rows-1, 0, 0
	s.at.row, s.at.col, s.at.wrap = min(s.at.row-gone, rows-1), min(s.at.col, cols-1), false
}

// Line returns what draws a line: the cursor must be at its begin.
func (s *Screen) Line(row int) string {
	var b strings.Builder
	b.WriteString("\x1b[0m\x1b[2K")
	line := s.now.lines[row]
	end := len(line)
	for end > 0 && line[end-1] == (cell{}) {
		end--
	}
	pen := style{}
	for _, c := range line[:end] {
		if c.char != 0 && c.width == 0 {
			continue
		}
		if c.style != pen {
			pen = c.style
			b.WriteString(pen.sequence())
		}
		if c.char == 0 {
			b.WriteByte(' ')
		} else {
			b.WriteRune(c.char)
			b.WriteString(c.more)
		}
	}
	return b.String()
}

// Text returns the text of a line without trailing blanks.
func (s *Screen) Text(row int) string {
	var b strings.Builder
	for _, c := range s.now.lines[row] {
		switch {
		case c.char == 0:
			b.WriteByte(' ')
		case c.width > 0:
			b.WriteString(string(c.char) + c.more)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// Single is what makes the line of the cursor one of characters of single width, whatever the program has made it.
const Single = "\x1b#5"

// Interrupt returns what must precede Begin if nothing may be seen over what is drawn, or in its place: it ends a sequence that the terminal
// takes for unfinished, leaves its status line, and takes its pictures away, which do not come back.
func (s *Screen) Interrupt() string {
	text := "\x18\x1b\\\x1b[0$}"
	if s.pictures {
		text += "\x1b_Ga=d,q=2\x1b\\"
	}
	s.pictures = false
	return text
}

// Begin returns what must precede drawing: it remembers where the program is, and switches off what would change what is drawn, also
// where the program is not known to have switched it on.
func (s *Screen) Begin() string {
	text := "\x1b[?2026h\x1b7\x1b[?7l\x1b[?69l\x1b[?6l\x1b[4l\x0f\x1b(B"
	if s.latin {
		text += "\x1b%G"
	}
	if s.link != "" {
		text += "\x1b]8;;\x1b\\"
	}
	return text
}

// End returns what ends drawing: the program goes on as if nothing had been drawn.
func (s *Screen) End() string { return s.finish(s.now.saved != nil) }

// EndAt is End where the terminal may have moved the cursor meanwhile.
func (s *Screen) EndAt() string { return s.finish(true) }

func (s *Screen) finish(moves bool) string {
	var b strings.Builder
	if s.insert {
		b.WriteString("\x1b[4h")
	}
	if !s.noWrap {
		b.WriteString("\x1b[?7h")
	}
	if s.link != "" {
		b.WriteString("\x1b]8;" + s.link + "\x1b\\")
	}
	if s.latin {
		b.WriteString("\x1b%@")
	}
	if s.sides { // both move the cursor
		b.WriteString("\x1b[?69h")
		if s.right > 0 {
			fmt.Fprintf(&b, "\x1b[%d;%ds", s.left, s.right)
		}
	}
	switch {
	case !moves:
		b.WriteString("\x1b8")
	case s.now.saved == nil:
		b.WriteString(s.goTo(&s.at))
	default: // the terminal saves one position, and that is the program's
		b.WriteString(s.goTo(s.now.saved) + "\x1b7" + s.goTo(&s.at))
	}
	b.WriteString(s.sets())
	if s.at.wrap { // it is lost, and comes back with the character that made it
		col := s.at.col
		line := s.now.lines[s.at.row]
		if line[col].char != 0 && line[col].width == 0 {
			col--
		}
		fmt.Fprintf(&b, "\x1b[%dG", col+1)
		b.WriteString(line[col].style.sequence())
		b.WriteString(string(max(line[col].char, ' ')) + line[col].more)
	}
	b.WriteString(s.at.pen.sequence() + "\x1b[?2026l")
	return b.String()
}

// sets returns what designates the program's character sets, if they are not the usual ones.
func (s *Screen) sets() string {
	set := cmp.Or(s.at.sets[0], 'B')
	if set == 'B' && s.at.shift == 0 {
		return ""
	}
	text := "\x1b(" + string(rune(set))
	if s.at.shift != 0 {
		text += "\x0e"
	}
	return text
}

// goTo returns what takes the cursor to a place, with origin mode as it was there.
func (s *Screen) goTo(c *cursor) string {
	row := c.row + 1
	mode := ""
	if c.origin {
		mode, row = "\x1b[?6h", row-s.top
	} else if s.at.origin || s.now.saved != nil && s.now.saved.origin {
		mode = "\x1b[?6l"
	}
	return fmt.Sprintf("%s\x1b[%d;%dH%s", mode, max(row, 1), c.col+1, c.pen.sequence())
}
