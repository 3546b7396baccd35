package emulator

import (
	"slices"
	"strconv"
	"strings"
)

// escape handles the byte after ESC.
func (s *Screen) escape(b byte) {
	s.state = ground
	switch {
	case b == '[':
		s.state = control
	case strings.IndexByte("]PX^_", b) >= 0:
		s.state = text
		s.text = append(s.text[:0], b)
	case b >= 0x20 && b <= 0x2f:
		s.state, s.inter = intermediate, b
	case b == '7':
		s.save()
	case b == '8':
		s.restore()
	case b == 'D':
		s.down()
	case b == 'E':
		s.at.col = 0
		s.down()
	case b == 'M':
		s.up()
	case b == 'c':
		s.reset()
	}
}

// designate handles the end of ESC ( B and the like.
func (s *Screen) designate(b byte) {
	if b >= 0x20 && b <= 0x2f {
		s.inter = b
		return
	}
	s.state = ground
	switch s.inter {
	case '(', ')':
		s.at.sets[s.inter-'('] = b
	case '%':
		s.latin = b == '@'
	}
}

func (s *Screen) save() {
	saved := s.at
	s.now.saved = &saved
}

func (s *Screen) restore() {
	if s.at = (cursor{}); s.now.saved != nil {
		s.at = *s.now.saved
	}
	s.at.row, s.at.col = min(s.at.row, s.rows-1), min(s.at.col, s.cols-1)
}

// string handles a byte of a string, which ESC \ ends, or that as one character; BEL ends only an OSC.
func (s *Screen) string(b byte) {
	lead := s.lead
	s.lead = b == 0xc2
	switch {
	case b == 0x07 && s.text[0] == ']', b == '\\' && s.state == textEscape, b == 0x9c && lead:
		s.state = ground
		s.hyperlink(strings.TrimSuffix(string(s.text), "\xc2"))
	case b == 0x18 || b == 0x1a:
		s.state = ground
	case b == 0x1b:
		s.state = textEscape
	case s.state == textEscape: // another sequence
		s.state, s.text = escape, s.text[:0]
		s.take(b)
	case len(s.text) <= longestLink:
		s.text = append(s.text, b)
		s.pictures = s.pictures || len(s.text) == 2 && string(s.text) == "_G"
	}
}

// hyperlink handles the end of a string.
func (s *Screen) hyperlink(string string) {
	if rest, ok := strings.CutPrefix(string, "]8;"); ok {
		if s.link = rest; rest == ";" || len(string) > longestLink {
			s.link = ""
		}
	}
}

// parameter handles a byte of a control sequence.
func (s *Screen) parameter(b byte) {
	switch {
	case b >= '@' && b <= '~':
		s.state = ground
		if len(s.text) <= longestSequence {
			s.do(string(s.text), b)
		}
	case b <= '?' && len(s.text) <= longestSequence:
		s.text = append(s.text, b)
	}
}

// params are the parameters of a control sequence.
type params []int

func (p params) at(i, otherwise int) int {
	if i < len(p) && p[i] > 0 {
		return p[i]
	}
	return otherwise
}

// numbers parses parameters. What is none, such as the parts after a colon, is 0.
func numbers(text string) (list params) {
	for part := range strings.SplitSeq(text, ";") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			n = 0
		}
		list = append(list, min(n, 1<<15))
	}
	return list
}

// do carries a control sequence out.
func (s *Screen) do(text string, final byte) {
	if private, ok := strings.CutPrefix(text, "?"); ok {
		if final == 'h' || final == 'l' {
			for _, mode := range numbers(private) {
				s.private(mode, final == 'h')
			}
			return
		}
		if final == 'J' || final == 'K' {
			text = private
		}
	}
	if text == "!" && final == 'p' { // soft reset
		s.top, s.last, s.insert, s.noWrap, s.hidden = 0, s.rows-1, false, false, false
		s.at.origin, s.at.pen, s.at.sets, s.at.shift = false, style{}, [2]byte{}, 0
		s.sides, s.left, s.right = false, 0, 0
		return
	}
	if text != "" && (text[0] < '0' || text[0] > ';') || strings.ContainsAny(text, " !\"#$%&'()*+,-./") {
		return
	}
	p := numbers(text)
	n := p.at(0, 1)
	switch final {
	case 'm':
		s.at.pen.set(text)
	case 'n':
		switch n { // however it is written: terminals answer it all the same
		case 5:
			s.asked.Status++
		case 6:
			s.asked.Cursor++
		}
	case 'h', 'l':
		if slices.Contains(p, 4) {
			s.insert = final == 'h'
		}
	case 'r':
		top, last := n-1, min(p.at(1, s.rows), s.rows)-1
		if top < last {
			s.top, s.last = top, last
			s.move(0, 0)
		}
	case 's':
		if !s.sides {
			s.save()
		} else if left, right := n, min(p.at(1, s.cols), s.cols); left < right {
			s.left, s.right = left, right
			s.move(0, 0)
		}
	case 'u':
		s.restore()
	case 'b':
		for range min(n, s.cols) { // no program repeats more than a line, and each costs time
			s.print(max(s.before, ' '))
		}
	case 'A', 'B', 'e', 'C', 'a', 'D', 'E', 'F', 'G', '`', 'H', 'f', 'd', 'I', 'Z':
		s.motion(p, n, final)
	case 'J', 'K', 'X', '@', 'P', 'L', 'M', 'S', 'T':
		s.at.wrap = s.at.wrap && (final == 'S' || final == 'T')
		s.edit(p, n, final)
	}
}

// private sets or resets a private mode.
func (s *Screen) private(mode int, on bool) {
	switch mode {
	case 6:
		s.at.origin = on
		s.move(0, 0)
	case 7:
		s.noWrap = !on
	case 25:
		s.hidden = !on
	case 69:
		s.sides, s.left, s.right = on, 0, 0
	case 2004:
		s.paste = on
	case 2026:
		s.sync = on
	case 1048:
		if on {
			s.save()
		} else {
			s.restore()
		}
	case 47, 1047, 1049:
		if mode == 1049 && on && s.now == s.main {
			s.save()
		}
		if on && s.now == s.main {
			s.now = s.alt
			if mode == 1049 {
				s.clear()
			}
		} else if !on && s.now == s.alt {
			if mode == 1047 {
				s.clear()
			}
			if s.now = s.main; mode == 1049 {
				s.restore()
			}
		}
	}
}

func (s *Screen) clear() {
	for i := range s.now.lines {
		s.now.lines[i] = blank(s.cols, s.at.pen)
	}
}

// move moves the cursor to a place, which origin mode counts from the region.
func (s *Screen) move(row, col int) {
	first, last := 0, s.rows-1
	if s.at.origin {
		first, last = s.top, s.last
	}
	s.at.row, s.at.col, s.at.wrap = min(max(first+row, first), last), min(max(col, 0), s.cols-1), false
}

func (s *Screen) motion(p params, n int, final byte) {
	s.at.wrap = false
	first, last := 0, s.rows-1
	if s.at.row >= s.top && s.at.row <= s.last {
		first, last = s.top, s.last
	}
	switch final {
	case 'A', 'F':
		s.at.row = max(s.at.row-n, first)
	case 'B', 'e', 'E':
		s.at.row = min(s.at.row+n, last)
	case 'C', 'a':
		s.at.col = min(s.at.col+n, s.cols-1)
	case 'D':
		s.at.col = max(s.at.col-n, 0)
	case 'G', '`':
		s.at.col = min(n, s.cols) - 1
	case 'H', 'f':
		s.move(n-1, p.at(1, 1)-1)
	case 'd':
		s.move(n-1, s.at.col)
	case 'I':
		s.at.col = min((s.at.col/8+n)*8, s.cols-1)
	case 'Z':
		s.at.col = max((s.at.col+7)/8-n, 0) * 8
	}
	if final == 'E' || final == 'F' {
		s.at.col = 0
	}
}
