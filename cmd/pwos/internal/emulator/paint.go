package emulator

import (
	"fmt"
	"strconv"
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
	s.cols, s.rows, s.top, s.last = cols, rows, 0, rows-1
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

// Begin returns what must precede drawing: it remembers where the program is, and switches off what would change what is drawn.
func (s *Screen) Begin() string {
	text := "\x1b[?2026h\x1b7\x1b[?7l"
	if s.at.origin {
		text += "\x1b[?6l"
	}
	if s.insert {
		text += "\x1b[4l"
	}
	if s.at.sets[0] == '0' || s.at.shift != 0 {
		text += "\x0f\x1b(B"
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
	if s.at.sets[0] != '0' && s.at.shift == 0 {
		return ""
	}
	text := "\x1b(" + string(max(rune(s.at.sets[0]), 'B'))
	if s.at.sets[0] == '0' {
		text = "\x1b(0"
	}
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

// colour is 0 for the default one, palette+index, or direct+RGB.
type colour uint32

const (
	palette colour = 1 << 24
	direct  colour = 2 << 24
)

// style is how a cell looks.
type style struct {
	fg, bg, line colour
	looks        uint16 // bit n: SGR n is on, 1 to 9; bit 10: 53
	under        uint8  // kind of the underline
}

func (s style) background() style { return style{bg: s.bg} }

// sequence returns what sets the style, whatever was set before.
func (s style) sequence() string {
	text := "\x1b[0"
	for n := 1; n <= 9; n++ {
		if s.looks&(1<<n) != 0 {
			text += ";" + strconv.Itoa(n)
			if n == 4 && s.under > 1 {
				text += ":" + strconv.Itoa(int(s.under))
			}
		}
	}
	if s.looks&(1<<10) != 0 {
		text += ";53"
	}
	return text + s.fg.parameter(30) + s.bg.parameter(40) + s.line.parameter(50) + "m"
}

// parameter returns the parameters that set a colour; base is 30, 40, or 50 for that of an underline.
func (c colour) parameter(base int) string {
	n := int(c & (palette - 1))
	switch {
	case c == 0:
		return ""
	case c >= direct:
		return fmt.Sprintf(";%d;2;%d;%d;%d", base+8, n>>16, n>>8&255, n&255)
	case n < 8 && base < 50:
		return fmt.Sprintf(";%d", base+n)
	case n < 16 && base < 50:
		return fmt.Sprintf(";%d", base+60+n-8)
	}
	return fmt.Sprintf(";%d;5;%d", base+8, n)
}

// set carries SGR out.
func (s *style) set(text string) {
	parts := strings.Split(text, ";")
	for i := 0; i < len(parts); i++ {
		sub := strings.Split(parts[i], ":")
		n, _ := strconv.Atoi(sub[0]) // an empty one is 0
		switch {
		case n == 0:
			*s = style{}
		case n == 4 && len(sub) > 1:
			kind, _ := strconv.Atoi(sub[1])
			if s.under = uint8(kind & 7); s.under == 0 {
				s.looks &^= 1 << 4
			} else {
				s.looks |= 1 << 4
			}
		case n >= 1 && n <= 9:
			s.looks |= 1 << n
			if n == 4 {
				s.under = 1
			}
		case n == 21:
			s.looks, s.under = s.looks|1<<4, 2
		case n == 22:
			s.looks &^= 1<<1 | 1<<2
		case n >= 23 && n <= 29:
			s.looks &^= 1 << (n - 20)
		case n == 53:
			s.looks |= 1 << 10
		case n == 55:
			s.looks &^= 1 << 10
		case n >= 30 && n <= 37:
			s.fg = palette + colour(n-30)
		case n >= 40 && n <= 47:
			s.bg = palette + colour(n-40)
		case n >= 90 && n <= 97:
			s.fg = palette + colour(n-90+8)
		case n >= 100 && n <= 107:
			s.bg = palette + colour(n-100+8)
		case n == 39:
			s.fg = 0
		case n == 49:
			s.bg = 0
		case n == 59:
			s.line = 0
		case n == 38, n == 48, n == 58:
			at := map[int]*colour{38: &s.fg, 48: &s.bg, 58: &s.line}[n]
			if len(sub) > 1 {
				at.take(sub[1:])
			} else {
				i += at.take(parts[i+1:])
			}
		}
	}
}

// take sets a colour from 5;N, or 2;R;G;B, which a form with colons has with an empty part more. It returns how many parts it took.
func (c *colour) take(parts []string) int {
	number := func(i int) colour {
		if i >= len(parts) {
			return 0
		}
		n, _ := strconv.Atoi(parts[i])
		return colour(n & 255)
	}
	switch {
	case len(parts) >= 2 && parts[0] == "5":
		*c = palette + number(1)
		return 2
	case len(parts) >= 5 && parts[0] == "2" && parts[1] == "":
		*c = direct + number(2)<<16 + number(3)<<8 + number(4)
		return 5
	case len(parts) >= 4 && parts[0] == "2":
		*c = direct + number(1)<<16 + number(2)<<8 + number(3)
		return 4
	}
	return len(parts)
}
