package emulator

import "slices"

// edit erases, inserts and deletes.
func (s *Screen) edit(p params, n int, final byte) {
	line := s.now.lines[s.at.row]
	switch final {
	case 'J':
		from, to := s.at.row+1, s.rows
		switch p.at(0, 0) {
		case 0:
			s.erase(line, s.at.col, s.cols)
		case 1:
			s.erase(line, 0, s.at.col+1)
			from, to = 0, s.at.row
		case 2:
			from = 0
		default: // 3 is the scrollback
			return
		}
		if from == 0 && to == s.rows || from == 1 && s.at.col == 0 {
			s.known()
		}
		for ; from < to; from++ {
			s.erase(s.now.lines[from], 0, s.cols)
		}
	case 'K':
		from, to := s.at.col, s.cols
		switch p.at(0, 0) {
		case 1:
			from, to = 0, s.at.col+1
		case 2:
			from = 0
		}
		s.erase(line, from, to)
	case 'X':
		s.erase(line, s.at.col, min(s.at.col+n, s.cols))
	case '@':
		n = min(n, s.cols-s.at.col)
		split(line, s.at.col)
		copy(line[s.at.col+n:], line[s.at.col:])
		s.erase(line, s.at.col, s.at.col+n)
	case 'P':
		n = min(n, s.cols-s.at.col)
		split(line, s.at.col)
		copy(line[s.at.col:], line[s.at.col+n:])
		s.erase(line, s.cols-n, s.cols)
	case 'L', 'M':
		if s.at.row >= s.top && s.at.row <= s.last {
			if final == 'L' {
				n = -n
			}
			s.scroll(s.at.row, n)
			s.at.col = 0
		}
	case 'S':
		s.scroll(s.top, n)
	case 'T':
		s.scroll(s.top, -n)
	}
}

// erase blanks cells with the background of the pen.
func (s *Screen) erase(line []cell, from, to int) {
	split(line, from)
	split(line, to)
	if line = line[from:to]; s.at.pen.bg == 0 {
		clear(line)
		return
	}
	for i := range line {
		line[i] = cell{style: s.at.pen.background()}
	}
}

// scroll moves the lines from top to the end of the region up, or down if n is negative.
func (s *Screen) scroll(top, n int) {
	region := s.now.lines[top : s.last+1]
	up := n > 0
	n = min(max(n, -n), len(region))
	if up && s.now == s.main && top == 0 {
		s.unknown = max(s.unknown-n, 0)
	}
	if n == 1 && up {
		line := region[0]
		copy(region, region[1:])
		region[len(region)-1] = line
		s.erase(line, 0, s.cols)
		return
	}
	gone := slices.Clone(region[:n])
	if up {
		copy(region, region[n:])
		copy(region[len(region)-n:], gone)
		region = region[len(region)-n:]
	} else {
		gone = slices.Clone(region[len(region)-n:])
		copy(region[n:], region)
		copy(region, gone)
		region = region[:n]
	}
	for _, line := range region {
		s.erase(line, 0, s.cols)
	}
}
