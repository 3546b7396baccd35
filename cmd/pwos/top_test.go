package main_test

import (
	"context"
	"testing"

	pwos "github.com/promptware-os/pwos/cmd/pwos"
)

// Arrows come as sequences, of two kinds; other sequences are left out whole, so that their letters are not taken for keys.
func TestKeys(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"jkq": "j k q", "\x1b[A": "up", "\x1bOB": "down", "\x1b[B\x1b[BK": "down down K", "\x1b[1;5C": "", "\x1b[15~y": "y", "\x1b": "\x1b", "\x1b[": "",
		"\x03": "q",
	} {
		if got := pwos.Keys(typed); got != want {
			t.Errorf("%q is %q, want %q", typed, got, want)
		}
	}
}

// A reader that nobody listens to ends with its context, and says that no more keys come.
func TestReadKeysEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if open := pwos.KeysUntil(ctx, "j"); open {
		t.Error("a key came after the end")
	}
}

// The choice stays on its process while that is there, stays within the list, and can be seen.
func TestChosen(t *testing.T) {
	t.Parallel()
	pids := []int64{1, 2, 3, 4, 5}
	for _, tt := range []struct {
		name       string
		pids       []int64
		room       int
		chosen     int64
		moves      []int
		now, first int64
	}{
		{"nothing was chosen", pids, 3, 0, []int{0}, 1, 1},
		{"down", pids, 3, 1, []int{1, 1}, 3, 1},
		{"down and out of sight", pids, 3, 1, []int{1, 1, 1}, 4, 2},
		{"the end", pids, 3, 5, []int{1}, 5, 3},
		{"up again", pids, 3, 1, []int{1, 1, 1, -1, -1, -1}, 1, 1},
		{"above the beginning", pids, 3, 1, []int{-1}, 1, 1},
		{"the chosen one is gone", pids, 3, 9, []int{0}, 1, 1},
		{"nobody is there", nil, 3, 9, []int{1}, 0, 0},
	} {
		if now, first := pwos.Chosen(tt.pids, tt.room, tt.chosen, tt.moves...); now != tt.now || first != tt.first {
			t.Errorf("%s: %d is chosen and %d shown first, want %d and %d", tt.name, now, first, tt.now, tt.first)
		}
	}
}

// Text that a terminal would obey is escaped, in whatever pieces it comes.
func TestPlain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pieces []string
		want   string
	}{
		{[]string{"a line\n\tand"}, "a line\n\tand"},
		{[]string{"\x1b[2J", "\r\x07"}, `\u001b[2J\u000d\u0007`},
		{[]string{"gr\xc3", "\xbcn"}, "grün"},
		{[]string{"\xe2\x80", "\xae", "x"}, `\u202ex`},
		{[]string{"\xff!"}, "\ufffd!"},
		{[]string{"", ""}, ""},
	} {
		if got, err := pwos.Plain(tt.pieces...); got != tt.want || err != nil {
			t.Errorf("%q is shown as %q, %v, want %q", tt.pieces, got, err, tt.want)
		}
	}
}
