package main_test

import (
	"testing"

	pwos "github.com/promptware-os/pwos/cmd/pwos"
)

// TestTerminalModes checks that undo resets exactly the modes that a program left changed, however its output is split.
func TestTerminalModes(t *testing.T) {
	t.Parallel()
	for printed, want := range map[string]string{
		"text":                               "",
		"\x1b[?1049h":                        "\x1b[?1049l\x1b[0m",
		"\x1b[?1049h\x1b[?1049l":             "",
		"\x1b[?25l":                          "\x1b[?25h\x1b[0m",
		"\x1b[?25l\x1b[?25h":                 "",
		"\x1b[?25h":                          "",
		"\x1b[?1000;1006h\x1b[?1000l":        "\x1b[?1006l\x1b[0m",
		"\x1b[>1u\x1b[>5u\x1b[<u":            "\x1b[<1u\x1b[0m",
		"\x1b[>1u\x1b[<9u":                   "",
		"\x1b[u\x1b[?u\x1b[s":                "",
		"\x1b[31m\x1b[2J\x1b]0;title\a":      "",
		"\x1b[?\x1b[?7l":                     "\x1b[?7h\x1b[0m",
		"\x1b[?;x;99999999999999999999;h":    "",
		"\x1b[?" + string(make([]byte, 200)): "",
		"\x1b[?1049":                         "",
	} {
		if got := pwos.UndoneModes(printed); got != want {
			t.Errorf("after %q: %q, want %q", printed, got, want)
		}
	}
}

// TestTerminalQuestions checks what counts as a question to the terminal, however it is split.
func TestTerminalQuestions(t *testing.T) {
	t.Parallel()
	for printed, want := range map[string]bool{
		"text?": false, "\x1b[31m\x1b[2J\x1b[?25l\x1b[>1u\x1b[<u\x1b[4 q": false, "\x1b]0;title\a?": false, "\x1b]0;t\x1b\\?": false,
		"\x1b[6n": true, "\x1b[?6n": true, "\x1b[c": true, "\x1b[>0c": true, "\x1b[>q": true, "\x1b[?2026$p": true, "\x1b[18t": true, "\x1b[?u": true,
		"\x1b]11;?\a": true, "\x1b]52;c;?\x1b\\": true, "\x1bP+q544e\x1b\\": true, "\x1b_Gi=31,s=1,v=1,a=q;AAAA\x1b\\": true,
	} {
		if got := pwos.Asks(printed); got != want {
			t.Errorf("%q asks: %t", printed, got)
		}
	}
}
