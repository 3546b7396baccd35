package panel

import (
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/view"
)

// picture returns what is to be drawn.
func (p *Panel) picture(cols, rows int) []string {
	s := sketch{frame: boxed, style: p.Style, ascii: p.ASCII}
	if p.ASCII {
		s.frame = ascii
	}
	f := p.frozen
	switch {
	case f != nil:
		return p.frozenPicture(&s, cols, rows)
	case len(p.open) == 0:
		s.head = p.said
		return s.bar(cols).lines
	}
	q := p.open[0]
	s.left = clock(q.Expires.Sub(p.Now()))
	if p.calm == q.ID || rows < 8 || cols < 24 {
		s.head, s.corner = q.View.Sentence(), p.Name+" answers"
		return s.bar(cols).lines
	}
	s.head, s.text = q.View.Agent+" wants to", body(q.View)
	s.corner = p.more()
	if s.foot = p.Name + "   then   y once   a for an hour   n refuse   d details"; cols < 72 {
		s.foot = p.Name + " answers"
	}
	picture := s.draw(cols, max(rows/2, 6))
	return picture.lines
}

// more says how many other questions wait.
func (p *Panel) more() string {
	switch n := len(p.open) - 1; {
	case n > 1:
		return "and " + strconv.Itoa(n) + " more questions"
	case n == 1:
		return "and another question"
	}
	return ""
}

func (p *Panel) frozenPicture(s *sketch, cols, rows int) []string {
	f := p.frozen
	s.loud, s.page = true, f.page
	if f.question != nil {
		s.head, s.left = f.question.View.Agent+" wants to", clock(f.question.Expires.Sub(p.Now()))
		s.text = body(f.question.View)
	}
	switch f.mode {
	case choosing:
		s.foot = "y once   a for an hour   n refuse   d details   Esc back"
	case looking:
		s.foot = p.Name + " again, to answer   Esc back"
	case details:
		s.text = append(s.text, "")
		s.text = append(s.text, f.question.View.More...)
		s.foot = "y once   a for an hour   n refuse   d less   i as the kernel has it   Esc less"
	case raw:
		s.text = f.question.View.Raw
		s.foot = "y once   a for an hour   n refuse   i less   Esc less"
	case reason:
		s.text = append(s.text, "", "Why not? The agent is told: "+view.Escaped(string(f.why))+"_")
		s.foot, s.page = "Enter refuse   Esc back", 1<<20
	case deciding:
		s.foot = "giving the answer ..."
	case ended:
		s.head, s.text, s.left = "no answer was given", view.TextLines(f.ended), ""
		s.foot = "any key goes back"
	}
	picture := s.draw(cols, rows)
	if f.pages = picture.pages; f.pages > 1 {
		s.foot = "space next   b before   " + s.foot
		picture = s.draw(cols, rows)
		f.pages = picture.pages
	}
	return picture.lines
}

// body returns the text of a question: what is asked about in full, and where it came from.
func body(q *view.Question) (lines []string) {
	const column = 6
	lead := q.Does + "  "
	if width(q.Does) > column {
		lines = append(lines, q.Does)
		lead = "  "
	}
	lead = pad(lead, column)
	for i, line := range q.What {
		if i > 0 {
			lead = strings.Repeat(" ", width(lead))
		}
		lines = append(lines, lead+line)
	}
	if len(q.What) == 0 && width(q.Does) <= column {
		lines = append(lines, q.Does)
	}
	for _, fact := range q.Facts {
		lines = append(lines, pad(fact[0]+"  ", column)+fact[1])
	}
	return lines
}
