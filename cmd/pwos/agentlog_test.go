package main_test

import (
	"testing"

	pwos "github.com/promptware-os/pwos/cmd/pwos"
)

func TestLastLines(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text  string
		lines int64
		want  string
	}{
		{"", 3, ""},
		{"a\nb\nc\n", 0, ""},
		{"a\nb\nc\n", 1, "c\n"},
		{"a\nb\nc\n", 2, "b\nc\n"},
		{"a\nb\nc\n", 3, "a\nb\nc\n"},
		{"a\nb\nc\n", 1 << 62, "a\nb\nc\n"},
		{"a\nb\nc", 1, "c"}, // the last line is incomplete
		{"a\n\n\n", 2, "\n\n"},
		{"\n", 1, "\n"},
	} {
		if got := pwos.LastLines(tt.text, tt.lines); got != tt.want {
			t.Errorf("the last %d lines of %q are %q, want %q", tt.lines, tt.text, got, tt.want)
		}
	}
}
