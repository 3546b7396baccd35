package emulator

import "unicode/utf8"

// Screen is the content of a terminal. It is not safe for concurrent use.
type Screen struct {
	cols, rows int
	main, alt  *buffer
	now        *buffer // the one that is shown
	at         cursor
	top, last  int // scroll region, both within

	noWrap, insert, hidden, sync, paste bool // modes

	sides       bool // left and right margins can be set
	left, right int  // these, from 1; 0: there are none
	latin       bool // the terminal was told that what it gets is no UTF-8
	pictures    bool // it may show pictures of kitty's protocol

	state   state
	lead    bool   // within a string, the last byte began a character that may be a control character
	text    []byte // parameters of a sequence, the beginning of a string, or the first bytes of a character
	inter   byte   // last intermediate byte of a sequence
	link    string // hyperlink that is open, as its sequence has it
	before  rune   // last character, for its repetition
	whole   int
	asked   Requests
	unknown int // lines at the top of the main screen that the terminal showed before
}

// Requests count what the program has asked the terminal.
type Requests struct {
	Status int // ESC [ 5 n
	Cursor int // ESC [ 6 n
}

// cursor is what a program can save and restore.
type cursor struct {
	row, col int
	wrap     bool // a character was put into the last column: the next one begins a line
	pen      style
	sets     [2]byte // character sets G0 and G1: 0 or B is ASCII, 0 the line drawing set
	shift    int     // the set in use
	origin   bool    // rows count from the scroll region
}

// buffer is the main or the alternate screen.
type buffer struct {
	lines [][]cell
	saved *cursor
}

// cell is a position of the screen. The second half of a wide character has width 0.
type cell struct {
	char  rune // 0: blank
	more  string
	width uint8
	style style
}

type state uint8

const (
	ground state = iota
	character
	escape
	intermediate
	control // CSI
	text    // OSC, DCS, APC, PM or SOS
	textEscape
)

// Bounds of what is kept of a sequence and of marks that combine with a character.
const (
	longestSequence = 256
	longestLink     = 2 << 10
	longestMarks    = 32
)

// New returns a blank screen.
func New(cols, rows int) *Screen {
	s := &Screen{cols: max(cols, 1), rows: max(rows, 1)}
	s.reset()
	return s
}

func (s *Screen) reset() {
	s.main, s.alt = newBuffer(s.cols, s.rows), newBuffer(s.cols, s.rows)
	s.now, s.at, s.top, s.last = s.main, cursor{}, 0, s.rows-1
	s.noWrap, s.insert, s.hidden, s.sync, s.paste, s.link = false, false, false, false, false, ""
	s.sides, s.left, s.right, s.latin = false, 0, 0, false
}

func newBuffer(cols, rows int) *buffer {
	b := &buffer{lines: make([][]cell, rows)}
	for i := range b.lines {
		b.lines[i] = blank(cols, style{})
	}
	return b
}

// blank returns an empty line with a background.
func blank(cols int, pen style) []cell {
	line := make([]cell, cols)
	if bg := pen.background(); bg != (style{}) {
		for i := range line {
			line[i].style = bg
		}
	}
	return line
}

// Updating reports whether the program is within an update that is to be shown as a whole.
func (s *Screen) Updating() bool { return s.sync }

// Cut reports whether the program is within a sequence or a character.
func (s *Screen) Cut() bool { return s.state != ground }

// Size returns the size.
func (s *Screen) Size() (cols, rows int) { return s.cols, s.rows }

// Cursor returns the row of the cursor.
func (s *Screen) Cursor() (row int) { return s.at.row }

// CursorHidden reports whether the program has hidden the cursor.
func (s *Screen) CursorHidden() bool { return s.hidden }

// Pastes reports whether the program has asked for marks around what is pasted.
func (s *Screen) Pastes() bool { return s.paste }

// Asked returns what the program has asked the terminal.
func (s *Screen) Asked() Requests { return s.asked }

// Write takes output of the program.
func (s *Screen) Write(p []byte) (int, error) {
	s.whole = 0
	for i, b := range p {
		if s.state == ground {
			if s.whole = i; b >= ' ' && b < 0x7f {
				s.print(rune(b))
				continue
			}
		}
		s.take(b)
	}
	if s.state == ground {
		s.whole = len(p)
	}
	return len(p), nil
}

// Whole returns how much of the last Write is before a sequence or a character of which the rest is to come.
func (s *Screen) Whole() int { return s.whole }

// take handles a byte.
func (s *Screen) take(b byte) {
	switch {
	case s.state == text || s.state == textEscape:
		s.string(b)
		return
	case s.state == character:
		if b&0xc0 == 0x80 {
			if s.text = append(s.text, b); utf8.FullRune(s.text) {
				s.state = ground
				if r, _ := utf8.DecodeRune(s.text); r < 0x80 || r > 0x9f {
					s.print(r)
				} else { // a control character, which is the same as two of 7 bits
					s.text = s.text[:0]
					s.escape(byte(r - 0x40))
				}
			}
			return
		}
		s.state = ground
		s.print(utf8.RuneError)
	}
	switch {
	case b == 0x1b:
		s.state, s.inter, s.text = escape, 0, s.text[:0]
	case b == 0x18 || b == 0x1a: // CAN and SUB end a sequence
		s.state = ground
	case b < ' ':
		s.control(b)
	case s.state == escape:
		s.escape(b)
	case s.state == intermediate:
		s.designate(b)
	case s.state == control:
		s.parameter(b)
	case b >= 0x80:
		if s.text = append(s.text[:0], b); utf8.RuneStart(b) && !utf8.FullRune(s.text) {
			s.state = character
			return
		}
		s.print(utf8.RuneError)
	case b < 0x7f:
		s.print(rune(b))
	}
}

// control handles a control character.
func (s *Screen) control(b byte) {
	switch b {
	case '\b':
		s.at.col, s.at.wrap = max(s.at.col-1, 0), false
	case '\t':
		s.at.col = min(s.at.col/8*8+8, s.cols-1)
	case '\n', '\v', '\f':
		s.down()
	case '\r':
		s.at.col, s.at.wrap = 0, false
	case 0x0e, 0x0f:
		s.at.shift = int(0x0f - b)
	}
}

// down moves the cursor to the next line, and scrolls at the end of the region.
func (s *Screen) down() {
	s.at.wrap = false
	switch {
	case s.at.row == s.last:
		s.scroll(s.top, 1)
	case s.at.row < s.rows-1:
		s.at.row++
	}
}

// up moves the cursor to the line before, and scrolls at the begin of the region.
func (s *Screen) up() {
	s.at.wrap = false
	switch {
	case s.at.row == s.top:
		s.scroll(s.top, -1)
	case s.at.row > 0:
		s.at.row--
	}
}
