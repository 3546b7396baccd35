package strayframe_test

import (
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/strayframe"
)

// TestFind: the first line that is a message is found, once, however the output is cut.
func TestFind(t *testing.T) {
	t.Parallel()
	const frame = `{"kind":"query","type":"Syscall.Ping","data":null,"metadata":{"id":"1","timestamp":0}}`
	for output, want := range map[string]int{
		"":                                       0,
		frame:                                    0, // without an end it is no line
		frame + "\n":                             1,
		frame + "\r\n":                           1,
		"text\n\n" + frame + "\n" + frame + "\n": 1,
		"text " + frame + "\n":                   0,
		frame + " text\n":                        0,
		" " + frame + "\n":                       0,
		`{"kind":"Pod","type":"x"}` + "\n":       0,
		`{"level":"info"}` + "\n" + frame + "\n": 1,
		`{"specversion":"1.0","kind":1,"type":"x"}` + "\n":                        0,
		"{" + strings.Repeat(" ", 1<<15) + frame[1:] + "\n" + "\xff\n":            0,
		strings.Repeat("x", 1<<15) + frame + "\n" + strings.Repeat(frame+"\n", 2): 1,
	} {
		for _, size := range []int{1, 7, 1 << 10, 1 << 20} {
			var f strayframe.Finder
			found := 0
			for rest := output; rest != ""; {
				n := min(size, len(rest))
				if f.Find([]byte(rest[:n])) {
					found++
				}
				rest = rest[n:]
			}
			if found != want {
				t.Errorf("%.200q in parts of %d: found %d, want %d", output, size, found, want)
			}
		}
	}
}
