package panel_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/cmd/pwos/internal/emulator"
)

// TestKnownState: whatever the program has done to the terminal, the frozen panel is drawn whole, and as it is; what the program had set
// is so afterwards.
func TestKnownState(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ done, frozen, after string }{
		"nothing":              {"", "\x18\x1b\\\x1b[0$}\x1b[?2026h\x1b7\x1b[?7l\x1b[?69l\x1b[?6l\x1b[4l\x0f\x1b(B", "\x1b[?7h"},
		"an unfinished string": {"\x1b_x\x07", "\x18\x1b\\", ""},
		"a picture":            {"\x1b_Ga=T,f=24;AAAA\x1b\\", "\x1b_Ga=d,q=2\x1b\\", ""},
		"a picture by C1":      {"\u009fGa=T,f=24;AAAA\u009c", "\x1b_Ga=d,q=2\x1b\\", ""},
		"margins":              {"\x1b[?69h\x1b[1;30s\x1b[?7l", "\x1b[?69l", "\x1b[?69h\x1b[1;30s"},
		"margins by C1":        {"\u009b?69h\u009b1;30s", "\x1b[?69l", "\x1b[?69h\x1b[1;30s"},
		"wide lines":           {"\x1b[10H\x1b#6\x1b[24H\x1b#6", "H\x1b#5\x1b[0m", ""},
		"no UTF-8":             {"\x1b%@", "\x1b%G", "\x1b%@"},
		"character sets":       {"\x1b)0\x0e\x1b(A", "\x0f\x1b(B", "\x1b(A\x0e"},
		"no wrap":              {"\x1b[?7l\x1b[4h", "\x1b[4l", "\x1b[4h"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := sit(t, 80, 24)
			d.print(tt.done)
			d.ask("q-1", "git push")
			before := d.sent.Len()
			d.press(chord)
			frozen := d.sent.String()[before:]
			if !strings.Contains(frozen, tt.frozen) || tt.frozen[0] == 0x18 && !strings.HasPrefix(frozen, tt.frozen) {
				t.Errorf("frozen with %q, without %q", frozen, tt.frozen)
			}
			if drawn, lines := strings.Count(frozen, emulator.Single), strings.Count(d.lines(), "│")/2+2; drawn != lines {
				t.Errorf("of %d lines %d are drawn: %q", lines, drawn, frozen)
			}
			d.want("run   git push")
			before = d.sent.Len()
			d.press("\x1b")
			if after := d.sent.String()[before:]; !strings.Contains(after, tt.after) || strings.Contains(after, "Ga=d") {
				t.Errorf("goes on with %q, without %q", after, tt.after)
			}
		})
	}
}

// TestShellBetween: after others had the terminal, and the screen has gone up, the panel is where the terminal says, and takes nothing of
// what they have written away.
func TestShellBetween(t *testing.T) {
	t.Parallel()
	for _, before := range []int{2, 20} {
		d := sit(t, 40, 12)
		for i := range before {
			d.print(fmt.Sprintf("before %d\r\n", i))
		}
		d.ask("q-1", "git push")
		d.Hide(true)
		for i := range 10 {
			_, _ = d.screen.Write(fmt.Appendf(nil, "shell %d\r\n", i))
		}
		row := d.screen.Cursor()
		d.Hide(false)
		d.answer()
		d.want("run   git push")
		d.print("after 1\r\n")
		d.End("q-1", "it is over")
		d.now = d.now.Add(time.Minute)
		d.Tick()
		d.print("after 2")
		if got := strings.TrimRight(d.lines(), "\n"); row != 11 || strings.Contains(got, "before") || !strings.HasSuffix(got, "shell 8\nshell 9\nafter 1\nafter 2") {
			t.Errorf("after %d lines, from row %d:\n%s", before, row, got)
		}
	}
}

// TestOneAnswer: no other answer is given before the outcome of one is known, also if the panel was taken away meanwhile.
func TestOneAnswer(t *testing.T) {
	t.Parallel()
	over := func(d *desk) { d.End("q-1", "it is approved") }
	for name, tt := range map[string]struct {
		end  func(*desk)
		keys []string
	}{
		"shown again": {func(*desk) {}, []string{"y", "a", "n", "\r"}},
		"over":        {over, nil},
		"another question": {func(d *desk) {
			over(d)
			d.ask("q-2", "second")
		}, []string{"y", "a", "n", "\r"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := sit(t, 80, 24)
			d.print("$ ")
			d.ask("q-1", "first")
			d.press(chord, "y")
			d.Hide(true)
			tt.end(d)
			d.Hide(false)
			d.answer()
			d.press(chord)
			if name == "shown again" {
				d.want("giving the answer")
			}
			d.press(tt.keys...)
			if len(d.answers) != 1 {
				t.Errorf("answers %q", d.answers)
			}
			d.Decided("q-1", "allowed once", nil)
			d.press("\x1b", "\x1b")
			d.now = d.now.Add(time.Minute)
			d.Tick()
			d.End("q-2", "it is over")
			d.now = d.now.Add(time.Minute)
			d.Tick()
			d.ask("q-3", "third")
			d.press(chord, "y")
			if len(d.answers) != 2 {
				t.Errorf("answers %q\n%s", d.answers, d.lines())
			}
		})
	}
}
