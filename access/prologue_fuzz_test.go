package access_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema"
)

// FuzzPrologue: each frame before the admission gets at most one error, and no client is admitted
// without naming Syscall.Authenticate.
func FuzzPrologue(f *testing.F) {
	for _, tt := range prologues {
		f.Add(tt.input, false)
		f.Add(tt.input, true)
	}
	f.Fuzz(func(t *testing.T, input string, event bool) {
		dialect := schema.OsMessage
		if event {
			dialect = schema.OsEvent
		}
		link := newScript(dialect, input)
		_, err := access.RunPrologue(link, access.Offer{Data: []byte(`{"scheme":"none"}`)})
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		refusals := len(link.frames(t)) - 1
		if err == nil {
			// Without an escape, the name must be in the input.
			if !strings.Contains(input, "Syscall.Authenticate") && !strings.Contains(input, `\`) {
				t.Error("admitted without the right name")
			}
			return
		}
		if lines := countLines(input); refusals != lines {
			t.Errorf("%d lines got %d refusals", lines, refusals)
		}
	})
}

// countLines counts the lines that are not blank.
func countLines(input string) (n int) {
	for line := range strings.SplitSeq(input, "\n") {
		if strings.Trim(line, " \t\r") != "" {
			n++
		}
	}
	return n
}
