package outlog_test

import (
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/outlog"
)

// TestHeader: a file's header is read as it was written, and output that looks like a header is output.
func TestHeader(t *testing.T) {
	t.Parallel()
	forged := outlog.HeaderFor(99, nil) + "x\n"
	for _, tt := range []struct {
		start  int64
		output string
		header bool
	}{
		{0, "x\n", false},
		{0, "", false},
		{0, forged, true},
		{0, forged[:1], true},
		{1, "x\n", true},
		{1<<63 - 1, forged, true},
	} {
		header := outlog.HeaderFor(tt.start, []byte(tt.output))
		if (header != "") != tt.header {
			t.Errorf("output %q from %d has the header %q", tt.output, tt.start, header)
		}
		start, length, err := outlog.Header(strings.NewReader(header + tt.output))
		if err != nil || start != tt.start || length != int64(len(header)) {
			t.Errorf("the header %q before %q is read as %d, %d bytes, %v", header, tt.output, start, length, err)
		}
	}
	for _, output := range []string{"[pwos: the output before byte -1 is in older files, or gone]\n", "[pwos: the output before byte 1", "[pwos: the output before byte x is in older files, or gone]\n"} {
		if start, length, err := outlog.Header(strings.NewReader(output)); err != nil || start != 0 || length != 0 {
			t.Errorf("%q is read as a header: %d, %d bytes, %v", output, start, length, err)
		}
	}
}
