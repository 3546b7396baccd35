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
