package panel

import (
	"io"
	"slices"
	"sync"
	"time"

	"github.com/promptware-os/pwos/cmd/pwos/internal/emulator"
	"github.com/promptware-os/pwos/view"
)

// Question is an open question.
type Question struct {
	ID, Digest     string
	Asked, Expires time.Time
	View           *view.Question
}

// Answer is a person's answer to a question.
type Answer struct {
	Question *Question
	Approve  bool
	For      time.Duration // 0: once
	Why      string
}

// Settings are what a Panel needs of its surroundings.
type Settings struct {
	Out    io.Writer                // the terminal
	Chord  byte                     // a control character
	Name   string                   // of the chord
	ASCII  bool                     // the terminal shows nothing else
	Style  view.Paint               // no highlighting if it returns the text
	Notify func(text string) string // returns what the terminal is sent about a new question; nil: nothing
	May    func() bool              // reports whether the terminal may be drawn at
	Decide func(Answer)             // gives an answer, without waiting; Decided has the outcome
	Now    func() time.Time         // the clock
}

// Panel is safe for concurrent use. Hide, Resize, Typed and Close of a nil Panel leave everything to the program.
type Panel struct {
	Settings

	mu     sync.Mutex
	room   sync.Cond // there is room for output that is held back
	screen *emulator.Screen
	input  reader

	open   []*Question // the oldest first
	calm   string      // id of the question that a person has put aside: it takes a line
	said   string      // what has become of the last one
	until  time.Time   // when that is no longer shown
	hidden bool        // the terminal is somebody else's for a while
	closed bool
	rang   time.Time

	frozen *frozen // nil: keys are the program's
	given  string  // id of the question that was answered, until the outcome is known; "": there is none
	held   []byte  // output of the program while a question is frozen
	tail   []byte  // beginning of a sequence that the terminal has not got yet
	within bool    // the terminal has got the beginning of one

	pictured string    // id of the question that is drawn
	replaced time.Time // when it took the place of another

	top   int // of what is drawn
	drawn []string
	lost  bool // the terminal has moved what it shows, and its cursor
	moved bool // its cursor was moved

	located bool      // the cursor of the main screen is where the terminal has it
	asking  time.Time // since when the terminal is asked for its cursor; zero: it is not

	passed  emulator.Requests // answers of the terminal that the program got
	skip    int               // answers about its cursor that are the program's, and come first
	heard   bool              // it has answered something
	partial bool              // the beginning of a sequence was passed on
}

// Bounds of the output that is held back, in bytes: the program then waits, as after Ctrl-S, and of a sequence: it then reaches the terminal
// as it comes.
const (
	mostHeld    = 1 << 20
	longestTail = 4 << 10
)

// How long it is shown what has become of a question, and the least time between two bells.
const (
	saidFor   = 4 * time.Second
	quietTime = 3 * time.Second
)

// New returns the panel of a terminal.
func New(s Settings, cols, rows int) *Panel {
	p := &Panel{Settings: s, screen: emulator.New(cols, rows), input: reader{chord: s.Chord}}
	p.room.L = &p.mu
	return p
}

// Write shows output of the program. It never fails for a part.
func (p *Panel) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.holds() && len(p.held) >= mostHeld {
		p.room.Wait()
	}
	if p.holds() {
		p.held = append(p.held, text...)
		return len(text), nil
	}
	if err := p.show(text, ""); err != nil {
		return 0, err
	}
	return len(text), nil
}

// holds reports whether output is held back.
func (p *Panel) holds() bool { return !p.closed && (p.frozen != nil || !p.asking.IsZero()) }

// show lets the program go on, and draws the panel over that. While there is one, the beginning of a sequence waits for its end, so that
// the panel can be drawn before that.
func (p *Panel) show(text []byte, before string) error {
	before += p.erase()
	_, _ = p.screen.Write(text) // never fails
	whole := p.screen.Whole()
	if whole > 0 {
		p.within = false
		whole += len(p.tail)
	}
	all := append(p.tail, text...)
	p.tail = nil
	if p.screen.Cut() {
		if p.shows() && !p.closed && !p.within && len(all)-whole <= longestTail {
			all, p.tail = all[:whole], all[whole:]
		} else {
			p.within = true
		}
	} else {
		p.within = false
	}
	_, err := io.WriteString(p.Out, before+string(all)+p.paint(false))
	return err
}

// shows reports whether there is something to show.
func (p *Panel) shows() bool { return p.frozen != nil || len(p.open) > 0 || p.said != "" }

// Ask shows a question, unless it is shown already.
func (p *Panel) Ask(q *Question) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.ContainsFunc(p.open, func(o *Question) bool { return o.ID == q.ID }) {
		return
	}
	p.open = append(p.open, q)
	slices.SortStableFunc(p.open, func(a, b *Question) int { return a.Asked.Compare(b.Asked) })
	now := p.Now()
	if p.Notify != nil && now.Sub(p.rang) >= quietTime && !p.within && p.May() {
		p.rang = now
		_, _ = io.WriteString(p.Out, p.Notify(q.View.Sentence())) // fails if the terminal is closed
	}
	p.redraw(false)
}

// End takes a question away that was answered, or cannot be any more, and says how.
func (p *Panel) End(id, how string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over(id, how)
	p.redraw(false)
}

// over is End, with mu held.
func (p *Panel) over(id, how string) {
	i := slices.IndexFunc(p.open, func(q *Question) bool { return q.ID == id })
	if i < 0 {
		return
	}
	q := p.open[i]
	p.open = slices.Delete(p.open, i, i+1)
	switch f := p.frozen; {
	case f != nil && f.question == q && f.mode == deciding:
		return // Decided says more
	case f != nil && f.question == q:
		f.conclude(how + ": nothing was decided")
	default:
		p.say(q, how)
	}
}

// say shows what has become of a question for a while.
func (p *Panel) say(q *Question, how string) {
	p.said, p.until = how+": "+q.View.Sentence(), p.Now().Add(saidFor)
}

// Decided has the outcome of an answer: how the question has ended, or why the answer was refused.
func (p *Panel) Decided(id, how string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.given = ""
	if err == nil {
		p.open = slices.DeleteFunc(p.open, func(q *Question) bool { return q.ID == id })
	}
	f := p.frozen
	if f == nil || f.question == nil || f.question.ID != id || f.mode != deciding {
		p.redraw(f != nil)
		return
	}
	if err != nil {
		f.conclude(view.Escaped(err.Error()))
		p.redraw(true)
		return
	}
	p.say(f.question, how)
	p.thaw()
}

// Tick is called each second while Busy: time passes.
func (p *Panel) Tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.Now()
	if p.said != "" && !now.Before(p.until) {
		p.said = ""
	}
	for _, q := range slices.Clone(p.open) {
		if !now.Before(q.Expires) {
			p.over(q.ID, "it has expired")
		}
	}
	patience := silent
	if p.heard {
		patience = slow
	}
	if f := p.frozen; f != nil && !f.armed && now.Sub(f.since) >= patience {
		f.armed = true // the terminal tells no status
	}
	if !p.asking.IsZero() && now.Sub(p.asking) >= silent {
		p.newPage()
	}
	p.redraw(!p.within) // also within an update that does not end
}

// Busy reports whether something is shown.
func (p *Panel) Busy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shows() && !p.closed
}

// Resize follows the size of the terminal.
func (p *Panel) Resize(cols, rows int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c, r := p.screen.Size(); c == cols && r == rows {
		return
	}
	p.screen.Resize(cols, rows)
	p.lost, p.located = len(p.drawn) > 0, len(p.drawn) > 0
	p.redraw(p.frozen != nil)
}

// Close takes the panel away for good, and lets all output through. It returns how many answers of the terminal are still to come.
func (p *Panel) Close() (pending int) {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen != nil && !p.frozen.armed || !p.asking.IsZero() {
		pending = 1
	}
	p.open, p.said = nil, ""
	p.release()
	_, _ = io.WriteString(p.Out, p.erase()+string(p.tail)) // fails if the terminal is closed
	p.closed, p.tail = true, nil
	p.room.Broadcast()
	return pending
}
