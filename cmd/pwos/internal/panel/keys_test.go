package panel_test

import (
	"strings"
	"testing"
)

// TestKeys has what is typed while the question q-1 is open, each element a read: what the program gets of it, and which answers are
// given.
func TestKeys(t *testing.T) {
	t.Parallel()
	const yes, hour = "q-1 Dq-1 true 0s ", "q-1 Dq-1 true 1h0m0s "
	for name, tt := range map[string]struct {
		typed            []string
		program, answers string
	}{
		"no chord":                            {[]string{"y", "a", "n", "\x1b", "yes\r"}, "yan\x1byes\r", ""},
		"once":                                {[]string{"l", chord, "y"}, "l", yes},
		"for an hour":                         {[]string{chord, "a"}, "", hour},
		"refused":                             {[]string{chord, "n", "n", "o", "x", "\x7f", "!", "\r"}, "", "q-1 Dq-1 false 0s no!"},
		"refused without a reason":            {[]string{chord, "n", "\r"}, "", "q-1 Dq-1 false 0s "},
		"not refused":                         {[]string{chord, "n", "y", "\x1b", "y"}, "", yes},
		"other keys are dropped":              {[]string{chord, "x", "\r", "\x1b[C", "\x03", "Y", "\x1by", "y"}, "", yes},
		"keys after an answer wait":           {[]string{chord, "y", "y", "a"}, "", yes},
		"back":                                {[]string{chord, "\x1b", "y"}, "y", ""},
		"the chord twice":                     {[]string{chord, chord, "y"}, chord + "y", ""},
		"details and back":                    {[]string{chord, "d", "\x1b", "i", "i", "\x1b", "y"}, "y", ""},
		"from details":                        {[]string{chord, "d", "y"}, "", yes},
		"chord and key in a read":             {[]string{chord + "y", "z"}, "", ""},
		"before and after in a read":          {[]string{"ls" + chord + "y"}, "ls", ""},
		"several keys in a read":              {[]string{chord, "ye", "y"}, "", yes},
		"pasted":                              {[]string{"\x1b[200~" + chord + "y\x1b[201~", "y"}, "\x1b[200~" + chord + "y\x1b[201~y", ""},
		"pasted in parts":                     {[]string{"\x1b[20", "0~a" + chord, "y", chord, "y\x1b[201", "~"}, "\x1b[200~a" + chord + "y" + chord + "y\x1b[201~", ""},
		"pasted to the panel":                 {[]string{chord, "\x1b[200~y\x1b[201~", "\x1b[200~", "y", "\x1b[201~"}, "", ""},
		"a reason is pasted":                  {[]string{chord, "n", "\x1b[200~no\r\x1b[201~", "\r"}, "", "q-1 Dq-1 false 0s no"},
		"the mouse":                           {[]string{chord, "\x1b[<0;1;1M", "\x1b[My!!", "\x1b[M!y!", "\x1b[32;1;121M"}, "", ""},
		"the mouse is the program's":          {[]string{"\x1b[M" + chord + "  ", "\x1b[<0;1;1M"}, "\x1b[M" + chord + "  \x1b[<0;1;1M", ""},
		"application keypad":                  {[]string{chord, "\x1bOy", "\x1bOn"}, "", ""},
		"a sequence in parts":                 {[]string{chord, "\x1b[", "1;2", "y", "\x1bO", "y"}, "\x1b[1;2y", ""},
		"reports reach the program":           {[]string{chord, "\x1b[?2026;2$y", "\x1b[I", "\x1b]11;rgb:yy/y/y\x1b\\", "\x1b[9;9R", "\x1bP1$ry\x1b\\"}, "\x1b[?2026;2$y\x1b[I\x1b]11;rgb:yy/y/y\x1b\\\x1b[9;9R\x1bP1$ry\x1b\\", ""},
		"a report in parts":                   {[]string{"\x1b]11;rgb:", chord, "\x1b]11;rgb:", "y\x07"}, "\x1b]11;rgb:\x1b]11;rgb:y\x07", ""},
		"kitty's keyboard":                    {[]string{"\x1b[93;5u", "\x1b[93;5:3u", "\x1b[121;1:3u", "\x1b[121;5u", "\x1b[121;1:1u"}, "", yes},
		"kitty's keyboard with its locks":     {[]string{"\x1b[93;133u", "\x1b[121;129u"}, "", yes},
		"kitty's keyboard, without the chord": {[]string{"\x1b[93u", "\x1b[93;5:3u", "\x1b[93;7u", "\x1b[121u"}, "\x1b[93u\x1b[93;5:3u\x1b[93;7u\x1b[121u", ""},
		"xterm's other keys":                  {[]string{"\x1b[27;5;93~", "\x1b[27;1;121~"}, "", yes},
		"a key with its release":              {[]string{chord, "\x1b[93;5:3uy\x1b[121;1:3u"}, "", yes},
		"only a release":                      {[]string{chord, "\x1b[121;1:3u", "\x1b[121;1:3u\x1b[1;1:3A"}, "", ""},
		"a key that is held":                  {[]string{chord, "\x1b[121;1:2uy"}, "", ""},
		"the mouse was moved":                 {[]string{chord, "\x1b[<35;3;4My\x1b[<39;3;4M"}, "", yes},
		"the mouse was pressed":               {[]string{chord, "\x1b[<0;3;4My", "\x1b[<0;3;4my", "\x1b[<64;3;4My"}, "", ""},
		"an older report of the mouse":        {[]string{chord, "\x1b[MC\xc2\x80y", "\x1b[MC!!y", "\x1b[67;3;4My", "\x1b[99;3;4My"}, "", ""},
		"escape by kitty's keyboard":          {[]string{chord, "\x1b[27u", "y"}, "y", ""},
		"escape, then a sequence":             {[]string{"\x1b", "[A", chord, "y"}, "\x1b[A", yes},
		"letters of others":                   {[]string{"é", chord, "é", "ý", "\xff", "y"}, "é", yes},
		"pages":                               {[]string{chord, " ", "b", "\x1b[6~", "\x1b[5~", "\x1b[A", "j", "y"}, "", yes},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := sit(t, 80, 24)
			d.print("$ ")
			d.ask("q-1", "git push")
			d.press(tt.typed...)
			if got := strings.Join(d.answers, "; "); d.program != tt.program || got != tt.answers {
				t.Errorf("the program gets %q, want %q; the answers are %q, want %q", d.program, tt.program, got, tt.answers)
			}
		})
	}
}
