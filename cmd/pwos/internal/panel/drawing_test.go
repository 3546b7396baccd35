package panel_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/cmd/pwos/internal/panel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// push is a question as the kernel has it.
func push(command string) *view.Question {
	return view.QuestionOf(&schema.ApprovalState{ApprovalRequestedInput: schema.ApprovalRequestedInput{
		ID: "q-7", Rule: "push", PID: 3, Agent: "claude", Type: "Host.ToolUse", Digest: "0123abcd",
		Data: schema.Value(`{"host":"claude","session":"s","tool":"Bash","input":{"command":` + string(schema.AppendString(nil, command)) + `,"timeout":9},"cwd":"/home/me/shop"}`),
	}})
}

func (d *desk) askView(q *view.Question) {
	d.Ask(&panel.Question{ID: "q-7", Digest: "0123abcd", Asked: d.now, Expires: d.now.Add(29*time.Minute + 41*time.Second), View: q})
	d.answer()
}

// TestDrawn has the panel as it is shown.
func TestDrawn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cols, rows int
		command    string
		keys       []string
		ascii      bool
		want       string
	}{
		"80": {80, 24, "git push --force origin main", nil, false, `
╭─ claude wants to ────────────────────────────────────────────────────────────╮
│ run   git push --force origin main                                           │
│ in    /home/me/shop                                                          │
│ tool  Bash of claude                                                         │
│ rule  push                                                                   │
│ Ctrl-]   then   y once   a for an hour   n refuse   d details          29:41 │
╰──────────────────────────────────────────────────────────────────────────────╯`},
		"80, ascii": {80, 24, "git push 漢", []string{chord, "d"}, true, `
+- claude wants to ------------------------------------------------------------+
| run   git push \u6f22                                                        |
| in    /home/me/shop                                                          |
| tool  Bash of claude                                                         |
| rule  push                                                                   |
|                                                                              |
| timeout: 9                                                                   |
| q-7, of pid 3, asked at 00:00:00                                             |
| y once   a for an hour   n refuse   d less   i as the kernel has it          |
| Esc less                                                               29:41 |
+------------------------------------------------------------------------------+`},
		"40, long": {40, 12, "npm publish --access public && echo done\nsecond line", []string{chord}, false, `
╭─ claude wants to ────────────────────╮
│ run   npm publish --access public && │
│ ↳  echo done                         │
│       second line                    │
│ in    /home/me/shop                  │
│ tool  Bash of claude                 │
│ rule  push                           │
│ y once   a for an hour               │
│ n refuse   d details                 │
│ Esc back                       29:41 │
╰──────────────────────────────────────╯`},
		"40, pages": {40, 10, strings.Repeat("word ", 40), []string{chord, " "}, false, `
╭─ claude wants to ────────────────────╮
│ ↳ d word word word word word word wo │
│ ↳ rd word word word word word word w │
│ ↳ ord word word word word word word  │
│ lines 4 to 6 of 9                    │
│ space next   b before                │
│ y once   a for an hour               │
│ n refuse   d details                 │
│ Esc back                       29:41 │
╰──────────────────────────────────────╯`},
		"40 by 10": {40, 10, "git push", nil, false, `
╭─ claude wants to ────────────────────╮
│ run   git push                       │
│ in    /home/me/shop                  │
│ lines 1 to 2 of 4                    │
│ Ctrl-] answers                 29:41 │
╰──────────────────────────────────────╯`},
		"6 lines":        {60, 6, "git push", nil, false, "\n claude wants to run git push         Ctrl-] answers  29:41"},
		"a person waits": {60, 20, "git push", []string{chord, "\x1b"}, false, "\n claude wants to run git push         Ctrl-] answers  29:41"},
		"20 by 4":        {20, 4, "git push", []string{chord}, false, "\n╭─ claude wants to ╮\n│ run   git push   │\n│ lines 1 to 1 ... │\n│ space next 29:41 │"},
		"hostile": {60, 24, "\x1b[2J\x1b]0;x\x07\u202eevil\u2066 Z" + strings.Repeat("\u0301", 9) + " \u3164漢\r\n\x9b31m \U000e0041", []string{chord}, false, `
╭─ claude wants to ────────────────────────────────────────╮
│ run   \u001b[2J\u001b]0;x\u0007\u202eevil\u2066 Z` + strings.Repeat("\u0301", 3) + `\u0301\ │
│ ↳ u0301\u0301\u0301\u0301\u0301 \u3164漢                 │
│       �31m \U000e0041                                    │
│ in    /home/me/shop                                      │
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := sit(t, tt.cols, tt.rows, func(s *panel.Settings) {
				if s.ASCII = tt.ascii; tt.ascii {
					s.Name = "Ctrl-]"
				}
			})
			d.print("\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n")
			q := push(tt.command)
			for i, line := range q.More {
				if strings.HasPrefix(line, "q-7") {
					q.More[i] = "q-7, of pid 3, asked at 00:00:00"
				}
			}
			d.askView(q)
			d.press(tt.keys...)
			if !strings.HasPrefix("\n"+d.lines(), tt.want) {
				t.Errorf("want:%s\ngot:\n%s", tt.want, d.lines())
			}
		})
	}
}

// TestHuge: a question of a megabyte is shown in pages, all of it.
func TestHuge(t *testing.T) {
	t.Parallel()
	d := sit(t, 80, 24)
	d.askView(&view.Question{Agent: "claude", Does: "run", What: view.TextLines(strings.Repeat("0123456789", 100_000) + "end")})
	d.press(chord)
	d.want("lines 1 to 19 of ")
	d.press(" ")
	d.want("lines 20 to 38 of ")
}

// TestProgramGoesOn: whatever a program writes while the panel comes and goes, its screen is as it would be without.
func TestProgramGoesOn(t *testing.T) {
	t.Parallel()
	for name, parts := range map[string][]string{
		"lines":             {"1\r\n2\r\n3\r\n", "4\r\n", "5\r\n6\r\n7\r\n8\r\n9\r\n", "10\r\n11\r\n12\r\n13\r\n14\r\n$ "},
		"the last lines":    {"text\r\nspinner 1\r\ninput", "\x1b[1A\r\x1b[Jspinner 2\r\ninput", "\x1b[1A\r\x1b[Jmore text\r\nspinner 3\r\ninput", "\x1b[2Dx"},
		"a full screen":     {"$ vi\r\n\x1b[?1049h\x1b[2J\x1b[1;1Hone\x1b[12;1H\x1b[7mstatus\x1b[0m\x1b[5;5H", "\x1b[31mred", " again\x1b[2;11r\x1b[11;1H\n\x1b[r", "\x1b[3;3H\x1b[44mx", "\x1b[?1049l$ "},
		"parts of sequence": {"a\x1b[", "31", "mb\xe6\xbc", "\xa2c\x1b]0;ti", "tle\x07d", "\x1b[?2026h1\r\n2", "3\x1b[?2026l"},
		"saved cursor":      {"\x1b[4;4H\x1b7\x1b[2;2H", "x", "\x1b8y", "\x1b[?6h\x1b[3;5r", "\x1b[2;2Hz"},
		"the margin":        {strings.Repeat("-", 40), "over", "\r\n" + strings.Repeat("漢", 20), "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for asked := range parts {
				for _, keys := range [][]string{{chord, "n", "\r"}, {chord, "\x1b"}, {}} {
					d, alone := sit(t, 40, 12), sit(t, 40, 12)
					for i, part := range parts {
						alone.print(part)
						d.print(part)
						if i == asked && d.screen.Cut() { // a chord would cut the sequence off
							keys = nil
						}
						if i == asked {
							d.ask("q-1", "git push")
							d.press(keys[:min(1, len(keys))]...)
						}
						if i == asked+1 && len(keys) > 0 {
							d.press(keys[1:]...)
							d.Decided("q-1", "refused", nil)
						}
					}
					d.End("q-1", "it is over")
					d.now = d.now.Add(time.Minute)
					d.Tick()
					if len(d.answers) == 0 && len(keys) > 0 {
						d.press("\x1b")
					}
					d.Close()
					got, want := strings.TrimRight(d.lines(), "\n"), strings.TrimRight(alone.lines(), "\n")
					if got != want || d.screen.Cursor() != alone.screen.Cursor() {
						t.Fatalf("asked after part %d, keys %q:\n%s\nat %d, want:\n%s\nat %d", asked, keys, got, d.screen.Cursor(), want, alone.screen.Cursor())
					}
				}
			}
		})
	}
}

// TestShownBefore: what the terminal showed before the program is not lost under the panel.
func TestShownBefore(t *testing.T) {
	t.Parallel()
	d := sit(t, 40, 12)
	for i := range 9 {
		_, _ = d.screen.Write(fmt.Appendf(nil, "before %d\r\n", i))
	}
	d.print("$ ")
	d.ask("q-1", "git push")
	d.want("run   git push")
	d.want("$")
	d.End("q-1", "it is over")
	d.now = d.now.Add(time.Minute)
	d.Tick()
	d.print("ls\r\n$ ")
	if got := strings.TrimRight(d.lines(), "\n"); !strings.HasSuffix(got, "before 7\nbefore 8\n$ ls\n$") {
		t.Errorf("shown:\n%s", got)
	}
}

// TestHeld: what the program writes while a question is frozen is shown after it, and a program that writes much waits.
func TestHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, held)
}

func held(t *testing.T) {
	d := sit(t, 80, 24)
	d.print("$ ")
	d.ask("q-1", "git push")
	d.press(chord)
	d.print("╭─ claude wants to ─╮ \x1b[2J\x1b[Hother") // nothing of it is on the screen
	d.want("run   git push")
	if d.shows("other") {
		t.Errorf("shown:\n%s", d.lines())
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 3 {
			_, _ = d.Panel.Write(make([]byte, 1<<20))
		}
		_, _ = d.Panel.Write([]byte("the end"))
	}()
	synctest.Wait()
	select {
	case <-done:
		t.Error("the program does not wait")
	default:
	}
	d.press("y")
	d.Decided("q-1", "allowed once", nil)
	<-done
	d.want("the end")
}

// TestAway: nothing is drawn while somebody else has the terminal.
func TestAway(t *testing.T) {
	t.Parallel()
	d := sit(t, 80, 24)
	d.print("$ ")
	d.ask("q-1", "git push")
	d.Hide(true)
	if d.shows("git push") {
		t.Errorf("shown:\n%s", d.lines())
	}
	d.press(chord)
	if d.program != chord {
		t.Errorf("the program gets %q", d.program)
	}
	d.Hide(false)
	d.answer()
	d.want("git push")
	d.away = true
	d.ask("q-2", "second")
	d.print("more")
	if d.shows("another question") {
		t.Errorf("shown:\n%s", d.lines())
	}
}

// TestResize: the panel follows the size of the terminal, also frozen.
func TestResize(t *testing.T) {
	t.Parallel()
	d := sit(t, 80, 24)
	d.print("$ ")
	d.ask("q-1", "git push --force origin main")
	for _, keys := range []string{"", chord} {
		d.press(keys)
		for _, size := range [][2]int{{40, 10}, {100, 30}, {20, 4}, {1, 1}, {80, 24}} {
			d.screen.Resize(size[0], size[1])
			d.Resize(size[0], size[1])
			d.answer()
			if size[1] > 9 {
				d.want("git push")
				d.want("╰" + strings.Repeat("─", size[0]-2) + "╯")
			}
		}
	}
	d.press("y")
	if len(d.answers) != 1 {
		t.Errorf("answers %q", d.answers)
	}
}

// TestNotified: a person is notified once for questions that come together.
func TestNotified(t *testing.T) {
	t.Parallel()
	d := sit(t, 80, 24, func(s *panel.Settings) { s.Notify = func(text string) string { return "\a" + text + "\n" } })
	d.ask("q-1", "first")
	d.ask("q-2", "second")
	d.now = d.now.Add(time.Minute)
	d.ask("q-3", "third")
	if sent := d.sent.String(); strings.Count(sent, "\a") != 2 || !strings.Contains(sent, "\aclaude wants to run third\n") {
		t.Errorf("sent: %q", sent)
	}
}
