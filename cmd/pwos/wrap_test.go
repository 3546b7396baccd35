package main_test

import (
	"testing"

	pwos "github.com/promptware-os/pwos/cmd/pwos"
)

// What is broken is broken between words and begins below itself; what there is no room for runs on.
func TestHang(t *testing.T) {
	t.Parallel()
	const text = "one two three four five six seven eight"
	for _, c := range []struct {
		name, lead, text string
		width            int
		want             string
	}{
		{"no terminal", "a  ", text, 0, "a  " + text},
		{"it fits", "a  ", text, 42, "a  " + text},
		{"one too narrow", "a  ", text, 41, "a  one two three four five six seven\n   eight"},
		{"several lines", "ü  ", text, 28, "ü  one two three four five\n   six seven eight"},
		{"too little room", "a  ", text, 26, "a  " + text},
		{"a long word stays whole", "", "see /a/path/that/is/longer/than/the/line now", 24, "see /a/path/that/is/longer/than/the/line\nnow"},
		{"a long word alone", "", "/a/path/that/is/longer/than/the/line", 24, "/a/path/that/is/longer/than/the/line"},
		{"nothing", "a  ", "", 40, "a  "},
	} {
		if got := pwos.Hang(c.lead, c.text, c.width); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
