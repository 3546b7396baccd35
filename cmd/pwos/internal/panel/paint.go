package panel

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/promptware-os/pwos/cmd/pwos/internal/emulator"
)

// erase returns what draws the program's screen where the panel is.
func (p *Panel) erase() string {
	if len(p.drawn) == 0 {
		return ""
	}
	var b strings.Builder
	p.begin(&b)
	p.uncover(&b, 0, 0)
	b.WriteString(p.finish())
	p.drawn = nil
	return b.String()
}

// begin begins to draw.
func (p *Panel) begin(b *strings.Builder) {
	b.WriteString(p.screen.Begin())
	if p.lost {
		_, rows := p.screen.Size()
		for row := range rows {
			fmt.Fprintf(b, "\x1b[%d;1H%s", row+1, p.screen.Line(row))
		}
		p.drawn = nil
	}
}

// finish ends drawing.
func (p *Panel) finish() string {
	text := p.screen.End()
	if p.lost || p.moved {
		text = p.screen.EndAt()
	}
	p.lost, p.moved = false, false
	return text
}

// uncover draws the program's lines where the panel is, except for n lines from top.
func (p *Panel) uncover(b *strings.Builder, top, n int) {
	_, rows := p.screen.Size()
	for i := range p.drawn {
		if row := p.top + i; (row < top || row >= top+n) && row < rows {
			fmt.Fprintf(b, "\x1b[%d;1H%s", row+1, p.screen.Line(row))
		}
	}
}

// paint returns what draws the panel, or takes it away. Unless it must be drawn, it waits until the program is within no sequence.
func (p *Panel) paint(must bool) string {
	if p.hidden || p.closed || !p.May() || !must && (p.within || p.screen.Updating()) {
		return ""
	}
	var lines []string
	top, up := 0, 0
	if p.shows() {
		if !p.asking.IsZero() {
			return ""
		}
		if !p.located && !p.screen.Alternate() && p.frozen == nil {
			return p.askPlace()
		}
		cols, rows := p.screen.Size()
		lines = p.picture(cols, rows)
		p.picturing()
		top, up = p.placed(len(lines), rows)
	}
	if top == p.top && slices.Equal(lines, p.drawn) && !p.lost || len(lines) == 0 && len(p.drawn) == 0 {
		return ""
	}
	var b strings.Builder
	if up > 0 {
		b.WriteString(p.erase())
		p.moved = true
		b.WriteString(p.screen.MakeRoom(up))
	}
	p.begin(&b)
	p.uncover(&b, top, len(lines))
	for i, line := range lines {
		if top == p.top && i < len(p.drawn) && p.drawn[i] == line {
			continue
		}
		fmt.Fprintf(&b, "\x1b[%d;1H%s\x1b[0m%s", top+i+1, emulator.Single, line)
	}
	b.WriteString(p.finish())
	p.top, p.drawn = top, lines
	return b.String()
}

// picturing notes which question is drawn while keys are the program's.
func (p *Panel) picturing() {
	id := ""
	if len(p.open) > 0 {
		id = p.open[0].ID
	}
	if p.frozen != nil || id == p.pictured {
		return
	}
	if p.pictured != "" {
		p.replaced = p.Now()
	}
	p.pictured = id
}

// noticed is how long a question is on the screen that has taken the place of another, before a chord is about it.
const noticed = time.Second

// wasSeen reports whether a question was on the screen, and had not just taken the place of another.
func (p *Panel) wasSeen(id string) bool {
	return len(p.drawn) > 0 && p.pictured == id && p.Now().Sub(p.replaced) >= noticed
}

// placed returns the row where n lines are drawn, and how many lines the program's screen must go up for that. The line of the cursor is
// not covered if that is possible, and a line whose content is not known is not: it could not be drawn again.
func (p *Panel) placed(n, rows int) (top, up int) {
	row, unknown, bottom := p.screen.Cursor(), p.screen.Unknown(), max(rows-n, 0)
	covers := func(top int) bool { return p.frozen == nil && row >= top && row < top+n }
	switch {
	case len(p.drawn) > 0 && min(p.top, bottom) >= unknown && !covers(min(p.top, bottom)):
		return min(p.top, bottom), 0
	case unknown == 0 && (!covers(0) || covers(bottom)):
		return 0, 0
	case bottom >= unknown && !covers(bottom):
		return bottom, 0
	case unknown == 0:
		return bottom, 0
	}
	up = max(unknown-bottom, 0)
	if p.frozen == nil {
		up = max(up, row-bottom+1)
	}
	return bottom, up
}

// redraw draws what has changed. It is called with mu held.
func (p *Panel) redraw(must bool) {
	text := p.paint(must)
	if !p.shows() && len(p.tail) > 0 {
		text += string(p.tail)
		p.tail, p.within = nil, true
	}
	if text != "" {
		_, _ = io.WriteString(p.Out, text) // fails if the terminal is closed, which its reader reports
	}
}

// askPlace returns what asks the terminal where its cursor is. Until it answers, the program's output is held back.
func (p *Panel) askPlace() string {
	p.asking, p.skip = p.Now(), max(p.screen.Asked().Cursor-p.passed.Cursor, 0)
	return "\x1b[6n"
}

// isOurs reports whether an answer of the terminal about its cursor is the one that was asked for here.
func (p *Panel) isOurs() bool {
	if p.skip > 0 || p.asking.IsZero() {
		p.skip = max(p.skip-1, 0)
		p.passed.Cursor++
		return false
	}
	return true
}

// locate takes the terminal's answer, and shows what waits for it.
func (p *Panel) locate(t token) {
	var row int
	if _, err := fmt.Sscanf(string(t.full), "\x1b[%d;", &row); err == nil {
		p.screen.Align(row - 1)
	}
	p.located, p.asking = true, time.Time{}
	p.letThrough("")
}

// newPage begins a new page at a terminal that does not say where its cursor is: what it shows goes to its scrollback, and what is known of
// it is drawn again.
func (p *Panel) newPage() {
	p.asking = time.Time{}
	if !p.shows() {
		p.letThrough("")
		return
	}
	_, rows := p.screen.Size()
	p.located, p.lost = true, true
	p.letThrough(fmt.Sprintf("\x1b[0m\x1b[%d;1H%s", rows, strings.Repeat("\n", rows)))
}

// release lets the program go on, if a question is frozen.
func (p *Panel) release() {
	if p.frozen != nil {
		p.thaw()
	}
	if !p.asking.IsZero() {
		p.asking = time.Time{}
		p.letThrough("")
	}
}

// Hide gives the terminal away for a while, or takes it back.
func (p *Panel) Hide(hidden bool) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if hidden && !p.hidden {
		p.release()
		_, _ = io.WriteString(p.Out, p.erase()) // fails if the terminal is closed
	}
	if p.hidden && !hidden && !p.screen.Alternate() { // others have written, and the screen has gone up
		p.screen.Forget()
		p.located = false
	}
	if p.hidden = hidden; !hidden {
		p.redraw(false)
	}
}
