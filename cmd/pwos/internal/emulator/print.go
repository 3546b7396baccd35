package emulator

import "github.com/clipperhouse/displaywidth"

// print puts a character at the cursor.
func (s *Screen) print(r rune) {
	width := 1
	if r > 0x7e {
		width = displaywidth.Rune(r)
	} else if s.at.sets[s.at.shift] == '0' && r >= '`' {
		r = lines[r-'`']
	}
	if width == 0 {
		s.combine(r)
		return
	}
	if s.at.wrap && !s.noWrap || width == 2 && s.at.col == s.cols-1 && s.cols > 1 && !s.noWrap {
		s.at.col = 0
		s.down()
	}
	if width > s.cols-s.at.col {
		return
	}
	line := s.now.lines[s.at.row]
	if s.insert {
		copy(line[s.at.col+width:], line[s.at.col:])
	}
	split(line, s.at.col)
	split(line, s.at.col+width)
	if line[s.at.col] = (cell{char: r, width: uint8(width), style: s.at.pen}); r == ' ' {
		line[s.at.col] = cell{style: s.at.pen}
	}
	if width == 2 {
		line[s.at.col+1] = cell{char: r, style: s.at.pen}
	}
	s.before = r
	if s.at.col += width; s.at.col >= s.cols {
		s.at.col, s.at.wrap = s.cols-1, true
	}
}

// split blanks the wide character whose first half is just before col, and whose second half is at col.
func split(line []cell, col int) {
	if col > 0 && col < len(line) && line[col].char != 0 && line[col].width == 0 {
		line[col-1] = cell{style: line[col-1].style}
		line[col] = cell{style: line[col].style}
	}
}

// combine adds a mark to the character before the cursor.
func (s *Screen) combine(r rune) {
	col := s.at.col - 1
	if s.at.wrap {
		col = s.at.col
	}
	line := s.now.lines[s.at.row]
	if col > 0 && line[col].width == 0 && line[col].char != 0 {
		col--
	}
	if col < 0 || line[col].char == 0 || len(line[col].more) >= longestMarks {
		return
	}
	line[col].more += string(r)
}

// lines has the characters of the line drawing set, from ` to ~.
var lines = [...]rune{
	'◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼', '⎺', '⎻', '─', '⎼', '⎽', '├', '┤', '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
}
