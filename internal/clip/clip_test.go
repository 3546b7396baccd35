package clip_test

import (
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/clip"
)

// TestText: a text that is too long ends between two characters, and is no longer than it may be.
func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		size int
		want string
	}{
		{"", 0, ""},
		{"abcdef", 6, "abcdef"},
		{"abcdefg", 6, "abc…"},
		{"aéé", 5, "aéé"},
		{"aééa", 5, "a…"},
		{"a\U0001F600b", 5, "a…"},
		{"\U0001F600\U0001F600", 7, "\U0001F600…"},
		{strings.Repeat("\x80", 10), 8, "\x80…"}, // no text at all
	} {
		if got := clip.Text(c.text, c.size); got != c.want {
			t.Errorf("%q in %d bytes is %q, want %q", c.text, c.size, got, c.want)
		}
	}
}
