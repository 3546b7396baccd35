package panel

import (
	"strings"
	"time"
	"unicode"
)

// frozen is the state in which keys are an answer.
type frozen struct {
	question *Question // nil: there is none any more
	mode     mode
	armed    bool // keys count: the terminal has shown the question
	skip     int  // answers of the terminal that are the program's, and come before that
	since    time.Time
	page     int
	pages    int
	why      []rune // typed so far
	ended    string // why it cannot be answered any more
}

type mode uint8

const (
	choosing mode = iota
	looking       // the question was not on the screen before the chord: it needs another chord
	details
	raw
	reason   // for a refusal
	deciding // an answer was given, and its outcome is not known yet
	ended
)

// How long a terminal is waited for that may tell no status, and one that has answered before, but may be far away.
const (
	silent = time.Second
	slow   = 10 * time.Second
)

// anHour is how long the key a approves.
const anHour = time.Hour

// longestWhy bounds the reason of a refusal, in characters.
const longestWhy = 200

func (f *frozen) conclude(why string) { f.mode, f.ended, f.page = ended, why, 0 }

// freeze freezes what is shown. A sequence of which the terminal has got the beginning, and waits for the rest, is cut off.
func (p *Panel) freeze() {
	f := &frozen{since: p.Now(), skip: p.screen.Asked().Status - p.passed.Status}
	if f.skip < 0 {
		f.skip = 0
	}
	if len(p.open) > 0 {
		switch f.question = p.open[0]; {
		case f.question.ID == p.given:
			f.mode = deciding
		case !p.wasSeen(f.question.ID):
			f.mode = looking
		}
	} else {
		f.conclude(p.said)
	}
	p.frozen, p.said, p.calm = f, "", ""
	if p.within {
		p.within = false
		_, _ = p.screen.Write([]byte("\x18"))
	}
	clear(p.drawn) // nothing that is shown is relied on
	text := p.screen.Interrupt() + p.paint(true) + "\x1b[?25l"
	if !p.screen.Pastes() {
		text += "\x1b[?2004h"
	}
	_, _ = p.Out.Write([]byte(text + "\x1b[5n")) // fails if the terminal is closed, which its reader reports
}

// thaw gives the keys back to the program, and shows what it has written meanwhile.
func (p *Panel) thaw() {
	p.frozen = nil
	text := p.erase()
	if !p.screen.CursorHidden() {
		text += "\x1b[?25h"
	}
	if !p.screen.Pastes() {
		text += "\x1b[?2004l"
	}
	p.letThrough(text)
}

// letThrough shows what was held back.
func (p *Panel) letThrough(before string) {
	held := p.held
	p.held = nil
	p.room.Broadcast()
	_ = p.show(held, before) // fails if the terminal is closed, which its reader reports
}

// Typed takes what the terminal sends, and returns what of it is the program's.
func (p *Panel) Typed(text []byte) (program []byte) {
	if p == nil {
		return text
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return text
	}
	tokens := p.input.read(text)
	keys := 0
	for _, t := range tokens {
		p.heard = p.heard || t.kind == status || t.kind == place
		if t.kind == key || t.kind == chord || t.kind == pasted || t.kind == ignored {
			keys++
		}
	}
	for _, t := range tokens {
		if p.frozen == nil {
			program = p.pass(t, program)
			continue
		}
		switch t.kind {
		case part:
			p.partial = false
		case place:
			p.passed.Cursor++
			program = append(program, p.rest(t)...)
		case report:
			program = append(program, p.rest(t)...)
		case status:
			program = p.shownNow(t, program)
		case pasted:
			p.frozen.paste(t)
		case key, chord:
			if p.frozen.armed && keys == 1 {
				program = append(program, p.answer(t)...)
			} else if p.frozen.armed && p.frozen.mode == reason && t.kind == key && t.char >= 0 {
				p.frozen.insert(t.char)
			}
		case ignored, unpressed:
		}
	}
	if p.frozen != nil {
		p.redraw(true)
	}
	return program
}

// pass handles a token while keys are the program's.
func (p *Panel) pass(t token, program []byte) []byte {
	switch {
	case t.kind == status:
		p.passed.Status++
	case t.kind == place && p.isOurs():
		p.locate(t)
		return program
	case t.kind == chord && !p.asking.IsZero(): // nothing is shown yet
		return program
	}
	if t.kind == chord && len(t.raw) == len(t.full) && !p.hidden && (len(p.open) > 0 || p.said != "") {
		p.freeze()
		return program
	}
	p.partial = t.kind == part
	return append(program, t.raw...)
}

// rest returns what of a token the program has not got.
func (p *Panel) rest(t token) []byte {
	if p.partial {
		p.partial = false
		return t.raw
	}
	return t.full
}

// shownNow handles an answer of the terminal. After those that the program waits for comes the one that says that the panel is shown.
func (p *Panel) shownNow(t token, program []byte) []byte {
	f := p.frozen
	if f.armed || f.skip > 0 {
		f.skip = max(f.skip-1, 0)
		p.passed.Status++
		return append(program, p.rest(t)...)
	}
	f.armed = true
	return program
}

// answer handles a key that a person pressed after the frozen panel was shown. It returns the part of the input that is for the program.
func (p *Panel) answer(t token) []byte {
	f := p.frozen
	if t.kind == chord { // twice: it is the program's
		if f.mode == looking {
			f.mode = choosing
			return nil
		}
		if f.mode != deciding {
			p.thaw()
			return t.full
		}
		return nil
	}
	switch f.mode {
	case ended:
		p.thaw()
	case reason:
		f.edit(t.char, p)
	case deciding:
	case looking:
		if t.char == keyEscape {
			p.thaw()
		}
	default:
		f.choose(t.char, p)
	}
	return nil
}

// choose handles a key for the question.
func (f *frozen) choose(char rune, p *Panel) {
	switch char {
	case 'y':
		f.decide(p, Answer{Question: f.question, Approve: true})
	case 'a':
		f.decide(p, Answer{Question: f.question, Approve: true, For: anHour})
	case 'n':
		f.mode = reason
	case 'd':
		f.turn(details)
	case 'i':
		f.turn(raw)
	case ' ', keyPageDown, keyDown, 'j':
		f.page = min(f.page+1, max(f.pages-1, 0))
	case 'b', keyPageUp, keyUp, 'k':
		f.page = max(f.page-1, 0)
	case keyEscape:
		if f.mode != choosing {
			f.turn(f.mode)
			return
		}
		p.calm = f.question.ID
		p.thaw()
	}
}

// turn shows other texts of the question, or again the first.
func (f *frozen) turn(to mode) {
	if f.page = 0; f.mode == to {
		to = choosing
	}
	f.mode = to
}

// decide gives an answer. None is given before the outcome of the one before is known.
func (f *frozen) decide(p *Panel, a Answer) {
	if p.given != "" {
		return
	}
	f.mode, p.given = deciding, a.Question.ID
	p.Decide(a)
}

// edit handles a key of the reason.
func (f *frozen) edit(char rune, p *Panel) {
	switch {
	case char == keyEnter:
		f.decide(p, Answer{Question: f.question, Why: strings.TrimSpace(string(f.why))})
	case char == keyEscape:
		f.mode, f.why = choosing, nil
	case char == keyErase:
		f.why = f.why[:max(len(f.why)-1, 0)]
	case char >= 0:
		f.insert(char)
	}
}

// insert adds a character to the reason.
func (f *frozen) insert(char rune) {
	if unicode.IsPrint(char) && len(f.why) < longestWhy {
		f.why = append(f.why, char)
	}
}

// paste adds what is pasted to the reason. It is no answer to anything.
func (f *frozen) paste(t token) {
	if f.mode != reason || !f.armed {
		return
	}
	text := string(t.full)
	if strings.HasPrefix(text, "\x1b") {
		return
	}
	for _, char := range strings.NewReplacer("\r", " ", "\n", " ").Replace(text) {
		f.insert(char)
	}
}
