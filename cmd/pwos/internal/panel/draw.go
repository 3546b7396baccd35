package panel

import (
	"fmt"
	"strings"
	"time"

	"github.com/clipperhouse/displaywidth"

	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

// frame has the characters that draw a panel.
type frame struct {
	topLeft, topRight, bottomLeft, bottomRight, across, down string
	wrapped                                                  string // precedes the rest of a line that was too long
}

var (
	boxed = frame{"╭", "╮", "╰", "╯", "─", "│", "↳ "}
	ascii = frame{"+", "+", "+", "+", "-", "|", "\\ "}
)

// picture is what is drawn: lines of the width of the terminal.
type picture struct {
	lines []string
	pages int // of the text
}

// sketch is what a picture is made of.
type sketch struct {
	frame  frame
	style  view.Paint
	ascii  bool // other characters are escaped
	head   string
	corner string   // at the end of the head
	text   []string // plain lines, harmless
	foot   string   // keys
	left   string   // time left, at the end of the foot
	page   int      // of the text, from 0
	loud   bool
}

// draw returns a picture of at most rows lines. What does not fit is on other pages.
func (s *sketch) draw(cols, rows int) picture {
	inner := max(cols-4, 1)
	var text []string
	for _, line := range s.text {
		text = append(text, s.wrap(line, inner)...)
	}
	foot := words(s.plain(s.foot), max(inner-width(s.left)-2, 1))
	if len(foot) == 0 {
		foot = []string{""}
	}
	room := max(rows-2-len(foot), 1)
	pages := 1
	if len(text) > room {
		if room < 2 && len(foot) > 1 { // the text is more than the keys
			foot = foot[:1]
			room = max(rows-3, 1)
		}
		room = max(room-1, 1) // for the mark
		pages = (len(text) + room - 1) / room
		page := min(max(s.page, 0), pages-1)
		first, end := page*room, min((page+1)*room, len(text))
		mark := fmt.Sprintf("lines %d to %d of %d", first+1, end, len(text))
		text = append(append([]string{}, text[first:end]...), s.style(view.Bold, pad(cut(mark, inner), inner)))
	}
	p := picture{pages: pages}
	p.lines = append(p.lines, s.edge(s.frame.topLeft, s.frame.topRight, s.plain(s.head), s.plain(s.corner), cols))
	for _, line := range text {
		p.lines = append(p.lines, s.row(line, inner))
	}
	for i, line := range foot {
		if i == len(foot)-1 && s.left != "" {
			line = pad(line, inner-width(s.left)) + s.left
		}
		p.lines = append(p.lines, s.row(s.style(view.Bold, pad(cut(line, inner), inner)), inner))
	}
	p.lines = append(p.lines, s.edge(s.frame.bottomLeft, s.frame.bottomRight, "", "", cols))
	if len(p.lines) > rows { // a terminal of a few lines
		p.lines = p.lines[:rows]
	}
	return p
}

// bar returns a picture of one line.
func (s *sketch) bar(cols int) picture {
	right := s.left + " "
	if s.corner != "" {
		right = s.plain(s.corner) + "  " + right
	}
	room := cols - width(right) - 2
	if room < 8 {
		room, right = cols-1, ""
	}
	line := pad(pad(" "+cut(s.plain(s.head), room), room+2)+right, cols)
	line, _ = split(line, cols)
	return picture{lines: []string{"\x1b[7m" + line + "\x1b[0m"}, pages: 1}
}

// row returns a line within the frame. Text may be styled, and is as wide as inner, or plain and narrower.
func (s *sketch) row(text string, inner int) string {
	if !strings.Contains(text, "\x1b") {
		text = pad(text, inner)
	}
	side := s.paint(s.frame.down)
	return side + " " + text + " " + side
}

// edge returns the first or last line of the frame.
func (s *sketch) edge(left, right, head, corner string, cols int) string {
	inner := max(cols-2, 0)
	if head != "" {
		head = " " + head + " "
	}
	if corner != "" {
		corner = " " + corner + " "
	}
	if width(head)+width(corner)+3 > inner {
		corner = ""
	}
	head = cut(head, max(inner-1, 0))
	line := min(1, inner-width(head))
	rest := inner - line - width(head) - width(corner) - 1
	end := s.frame.across
	if rest < 0 {
		rest, end = max(rest+1, 0), ""
	}
	return s.paint(left+strings.Repeat(s.frame.across, line)) + s.style(view.Bold, head) + s.paint(strings.Repeat(s.frame.across, rest)+corner+end+right)
}

func (s *sketch) paint(text string) string {
	if s.loud {
		return s.style(view.Bad, text)
	}
	return s.style(view.Place, text)
}

// plain escapes what an ASCII terminal cannot show.
func (s *sketch) plain(text string) string {
	if !s.ascii {
		return text
	}
	return asciiOnly(text)
}

// wrap breaks a line after each width of characters.
func (s *sketch) wrap(line string, room int) (lines []string) {
	line = s.plain(line)
	first := true
	for {
		lead := ""
		if !first && room > 8 {
			lead = s.frame.wrapped
		}
		head, rest := split(line, room-width(lead))
		lines = append(lines, lead+head)
		if rest == "" {
			return lines
		}
		line, first = rest, false
	}
}

// width returns how many columns a text takes, as terminals count that do not join characters.
func width(text string) (n int) {
	for _, r := range text {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	if r < 0x7f {
		return 1
	}
	return displaywidth.Rune(r)
}

// split cuts a text after room columns, at least one character.
func split(text string, room int) (head, rest string) {
	n := 0
	for i, r := range text {
		if n += runeWidth(r); n > room && i > 0 {
			return text[:i], text[i:]
		}
	}
	return text, ""
}

// cut shortens a text to a width, with a mark.
func cut(text string, room int) string {
	if width(text) <= room {
		return text
	}
	if room < 4 {
		return strings.Repeat(".", max(room, 0))
	}
	head, _ := split(text, room-3)
	return head + "..."
}

// pad fills a text up to a width.
func pad(text string, room int) string {
	return text + strings.Repeat(" ", max(room-width(text), 0))
}

// words breaks a text between words that two spaces separate.
func words(text string, room int) (lines []string) {
	line := ""
	for word := range strings.SplitSeq(text, "   ") {
		switch {
		case line == "":
			line = word
		case width(line)+3+width(word) <= room:
			line += "   " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// clock formats the time that is left.
func clock(left time.Duration) string {
	seconds := max(int(left.Seconds()), 0)
	if seconds >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
	}
	return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
}

// asciiOnly returns text with escapes in place of what is not ASCII.
func asciiOnly(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r < 0x80 {
			b.WriteRune(r)
		} else {
			b.WriteString(quote.Rune(r))
		}
	}
	return b.String()
}
