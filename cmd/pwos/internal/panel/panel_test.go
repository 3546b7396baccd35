package panel_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/cmd/pwos/internal/emulator"
	"github.com/promptware-os/pwos/cmd/pwos/internal/panel"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/view"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// desk is a terminal with a panel, and a person.
type desk struct {
	t *testing.T
	*panel.Panel
	screen  *emulator.Screen // what the terminal shows
	sent    strings.Builder  // all that it got
	seen    int              // of sent, what it has answered
	mute    bool             // it answers nothing
	away    bool             // somebody else has it
	now     time.Time
	program string // what the program got of what was typed
	answers []string
}

const chord = "\x1d"

func sit(t *testing.T, cols, rows int, more ...func(*panel.Settings)) *desk {
	d := &desk{t: t, screen: emulator.New(cols, rows), now: time.Unix(1_000_000, 0)}
	s := panel.Settings{
		Out: d, Chord: 0x1d, Name: "Ctrl-]", Style: func(_ view.Look, text string) string { return text },
		May: func() bool { return !d.away }, Now: func() time.Time { return d.now },
		Decide: func(a panel.Answer) {
			d.answers = append(d.answers, fmt.Sprint(a.Question.ID, " ", a.Question.Digest, " ", a.Approve, " ", a.For, " ", a.Why))
		},
	}
	for _, set := range more {
		set(&s)
	}
	d.Panel = panel.New(s, cols, rows)
	return d
}

// Write is the terminal's.
func (d *desk) Write(text []byte) (int, error) {
	d.sent.Write(text)
	return d.screen.Write(text)
}

// print has the program write.
func (d *desk) print(text string) {
	_, _ = d.Panel.Write([]byte(text))
	d.answer()
}

// answer has the terminal answer what it was asked.
func (d *desk) answer() {
	for !d.mute {
		text := d.sent.String()[d.seen:]
		status, place := strings.Index(text, "\x1b[5n"), strings.Index(text, "\x1b[6n")
		switch {
		case status < 0 && place < 0:
			return
		case place < 0 || status >= 0 && status < place:
			d.seen += status + 4
			d.program += string(d.Typed([]byte("\x1b[0n")))
		default:
			d.seen += place + 4
			d.program += string(d.Typed(fmt.Appendf(nil, "\x1b[%d;1R", d.screen.Cursor()+1)))
		}
	}
}

// press has a person press keys, each of which is a read.
func (d *desk) press(keys ...string) {
	for _, k := range keys {
		d.program += string(d.Typed([]byte(k)))
		d.answer()
	}
}

func (d *desk) ask(id, what string) {
	d.Ask(&panel.Question{ID: id, Digest: "D" + id, Asked: d.now, Expires: d.now.Add(30 * time.Minute), View: &view.Question{
		Agent: "claude", Does: "run", What: view.TextLines(what), Facts: [][2]string{{"rule", "push"}}, More: []string{"more of " + id}, Raw: []string{"raw of " + id},
	}})
	d.answer()
}

func (d *desk) lines() string {
	var b strings.Builder
	_, rows := d.screen.Size()
	for row := range rows {
		b.WriteString(d.screen.Text(row) + "\n")
	}
	return b.String()
}

func (d *desk) shows(text string) bool { return strings.Contains(d.lines(), text) }

func (d *desk) want(what string) {
	d.t.Helper()
	if !d.shows(what) {
		d.t.Errorf("%q is not shown:\n%s", what, d.lines())
	}
}

// TestNoQuestion: without a question all keys are the program's.
func TestNoQuestion(t *testing.T) {
	t.Parallel()
	d := sit(t, 80, 24)
	d.print("$ ")
	d.press(chord, "y", "\x1b[93;5u")
	if d.program != chord+"y\x1b[93;5u" || d.sent.String() != "$ " {
		t.Errorf("the program gets %q, and the terminal %q", d.program, d.sent.String())
	}
	d.print("\x1b[2J\x1b[1;1H╭─ claude wants to ─╮ Ctrl-] then y") // its own panel
	d.press(chord, "y")
	if len(d.answers) > 0 {
		t.Errorf("answers %q", d.answers)
	}
}

// TestNotBeforeShown: nothing that was typed before the terminal has shown the frozen question is an answer.
func TestNotBeforeShown(t *testing.T) {
	t.Parallel()
	d := sit(t, 80, 24)
	d.ask("q-1", "git push")
	d.mute = true
	d.press(chord, "y", "y", "a")
	if len(d.answers) > 0 || d.program != "" {
		t.Errorf("answers %q, the program gets %q", d.answers, d.program)
	}
	d.now = d.now.Add(5 * time.Second) // it is far away
	d.Tick()
	d.press("y")
	if len(d.answers) > 0 || d.program != "" {
		t.Errorf("answers %q, the program gets %q", d.answers, d.program)
	}
	d.mute = false
	d.answer()
	d.press("y")
	if len(d.answers) != 1 {
		t.Errorf("answers %q", d.answers)
	}

	// The answer that the program waits for comes first.
	d = sit(t, 80, 24)
	d.ask("q-1", "git push")
	d.mute = true
	d.print("\x1b[5n")
	d.press(chord, "\x1b[0n", "y")
	if len(d.answers) > 0 || d.program != "\x1b[0n" {
		t.Errorf("answers %q, the program gets %q", d.answers, d.program)
	}
	d.press("\x1b[0n", "y")
	if len(d.answers) != 1 || d.program != "\x1b[0n" {
		t.Errorf("answers %q, the program gets %q", d.answers, d.program)
	}

	// A terminal that answers nothing is waited for a second.
	d = sit(t, 80, 24)
	d.mute = true
	d.ask("q-1", "git push")
	d.press(chord)
	if d.program != "" || d.shows("git push") {
		t.Errorf("the program gets %q:\n%s", d.program, d.lines())
	}
	d.now = d.now.Add(time.Second)
	d.Tick()
	d.want("git push")
	d.press(chord, "y")
	d.now = d.now.Add(time.Second)
	d.Tick()
	d.press("y")
	if len(d.answers) != 1 {
		t.Errorf("answers %q", d.answers)
	}
}

// TestNotSeen: a chord while the program has kept the question from the screen is about nothing: it shows the question, and another one is
// needed.
func TestNotSeen(t *testing.T) {
	t.Parallel()
	d := sit(t, 80, 24)
	d.print("\x1b[?2026h[ run ls?  Ctrl-] then y ]") // an update that does not end
	d.ask("q-1", "first")
	d.press(chord, "y", "a")
	d.want("run   first")
	d.want("Ctrl-] again, to answer")
	if len(d.answers) > 0 {
		t.Fatalf("answers %q", d.answers)
	}
	d.press(chord, "y")
	if len(d.answers) != 1 || d.program != "" {
		t.Errorf("answers %q, the program gets %q", d.answers, d.program)
	}
}

// TestOldestIsShown: the answer is to the question that was frozen, whatever is asked meanwhile; the next one needs another chord.
func TestOldestIsShown(t *testing.T) {
	t.Parallel()
	d := sit(t, 80, 24)
	d.ask("q-2", "second")
	d.now = d.now.Add(-time.Second)
	d.ask("q-1", "first")
	d.want("run   first")
	d.want("and another question")
	d.press(chord) // a moment ago the other one was there
	d.want("Ctrl-] again, to answer")
	if d.press("y"); len(d.answers) > 0 {
		t.Errorf("one that had just taken the place of another has the answers %q", d.answers)
	}
	d.press(chord)
	d.now = d.now.Add(-time.Second)
	d.ask("q-0", "before")
	d.want("run   first")
	d.press("y")
	d.Decided("q-1", "allowed once", nil)
	d.want("run   before")
	d.press("y")
	if got := strings.Join(d.answers, "; "); got != "q-1 Dq-1 true 0s " || d.program != "y" {
		t.Errorf("answers %q, the program gets %q", got, d.program)
	}
	d.now = d.now.Add(time.Minute)
	d.press(chord, "a")
	if len(d.answers) != 2 || !strings.HasPrefix(d.answers[1], "q-0") {
		t.Errorf("answers %q", d.answers)
	}
}

// TestEnded: a question that has ended is not answered, and neither is the next one by the same chord.
func TestEnded(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*desk){
		"answered elsewhere": func(d *desk) {
			d.ask("q-2", "second")
			d.End("q-1", "it is approved")
		},
		"expired": func(d *desk) {
			d.now = d.now.Add(30*time.Minute - time.Second)
			d.ask("q-2", "second")
			d.now = d.now.Add(time.Second)
			d.Tick()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := sit(t, 80, 24)
			d.print("$ ")
			d.ask("q-1", "first")
			d.press(chord)
			end(d)
			d.want("nothing was decided")
			d.press("y")
			d.want("run   second")
			d.press("y")
			if len(d.answers) > 0 || d.program != "y" {
				t.Errorf("answers %q, the program gets %q", d.answers, d.program)
			}
		})
	}
	// One that ends before the chord is still shown for a while, and takes chord and key.
	d := sit(t, 80, 24)
	d.ask("q-1", "first")
	d.End("q-1", "it is refused")
	d.want("it is refused: claude wants to run first")
	d.press(chord, "y", "z")
	if len(d.answers) > 0 || d.program != "z" {
		t.Errorf("answers %q, the program gets %q", d.answers, d.program)
	}
	d.now = d.now.Add(time.Minute)
	d.Tick()
	if d.Busy() || d.shows("first") {
		t.Errorf("still shown:\n%s", d.lines())
	}
	// The kernel refuses the answer.
	d.ask("q-3", "third")
	d.press(chord, "y")
	d.Decided("q-3", "", errors.New("q-3 is used already: nothing was decided"))
	d.want("q-3 is used already: nothing was decided")
	d.press("y", "z")
	if len(d.answers) != 1 || d.program != "zz" {
		t.Errorf("answers %q, the program gets %q", d.answers, d.program)
	}
}
