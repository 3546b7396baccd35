package main_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	pwos "github.com/promptware-os/pwos/cmd/pwos"
)

// TestNotify: a question rings, and reaches the desktop once, by the terminal or by notify-send.
func TestNotify(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ env, sent, run string }{
		{"TERM=xterm", "\a", ""},
		{"TERM=xterm DISPLAY=:0", "\a", "/bin/notify-send --app-name=pwos -- pwos a; b"},
		{"TERM=xterm WAYLAND_DISPLAY=w", "\a", "/bin/notify-send --app-name=pwos -- pwos a; b"},
		{"TERM=xterm DISPLAY=:10 SSH_CONNECTION=x", "\a", ""},
		{"TERM=xterm-kitty DISPLAY=:0", "\a\x1b]9;a; b\x07", ""},
		{"TERM_PROGRAM=iTerm.app", "\a\x1b]9;a; b\x07", ""},
		{"TERM=foot", "\a\x1b]777;notify;pwos;a, b\x07", ""},
		{"TERM=tmux-256color TERM_PROGRAM=tmux TMUX=x KITTY_WINDOW_ID=1", "\a\x1bPtmux;\x1b\x1b]9;a; b\x07\x1b\\", ""},
	} {
		sent, run := pwos.Notified(tt.env, "a; b")
		if sent != tt.sent || run != tt.run {
			t.Errorf("%s: %q and %q, want %q and %q", tt.env, sent, run, tt.sent, tt.run)
		}
	}
	if why := pwos.StoppedNotice("TERM=xterm DISPLAY=:0"); !errors.Is(why, context.Canceled) {
		t.Errorf("a notification that does not end ends by %v", why)
	}
	if sent, _ := pwos.Notified("TERM=foot", strings.Repeat("ä", 1000)); len(sent) > 500 || !strings.Contains(sent, "...") {
		t.Errorf("%q", sent)
	}
}
