package schema_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// corpusCase is a text of testdata/json-corpus, which testdata/README.md describes.
type corpusCase struct {
	name   string
	accept bool
	text   string
}

func readCorpus(t testing.TB) []corpusCase {
	t.Helper()
	files, err := filepath.Glob("testdata/json-corpus/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("list corpus: %v, %d files", err, len(files))
	}
	var cases []corpusCase
	for _, file := range files {
		content, err := os.ReadFile(file)
		testkit.Must(t, err)
		for n, line := range strings.Split(string(content), "\n") {
			if line == "" || line[0] == '#' {
				continue
			}
			verdict, rest, _ := strings.Cut(line, " ")
			name, literal, _ := strings.Cut(rest, " ")
			text, err := strconv.Unquote(literal)
			if err != nil || verdict != "accept" && verdict != "refuse" {
				t.Fatalf("%s:%d: not a case: %s", file, n+1, line)
			}
			cases = append(cases, corpusCase{name: name, accept: verdict == "accept", text: text})
		}
	}
	return cases
}

// TestCorpusIsSound checks the corpus: names are unique, y_ is accepted, n_ is refused, each text is one line.
func TestCorpusIsSound(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range readCorpus(t) {
		switch {
		case seen[c.name]:
			t.Errorf("%s is there twice", c.name)
		case strings.HasPrefix(c.name, "y_") && !c.accept, strings.HasPrefix(c.name, "n_") && c.accept:
			t.Errorf("%s has a verdict that its prefix rules out", c.name)
		case !strings.Contains("y_n_i_", c.name[:2]):
			t.Errorf("%s has no prefix", c.name)
		case strings.Contains(c.text, "\n"):
			t.Errorf("%s does not fit a line", c.name)
		}
		seen[c.name] = true
	}
	if len(seen) < 300 {
		t.Errorf("the corpus has shrunk to %d cases", len(seen))
	}
}

// TestCorpus checks that each text, as data or inside data, in either dialect, is refused as invalid JSON or passed through (MESSAGE
// 4.3.3 #1-#2, MESSAGE 8.4, EVENT 4.3.3 #1-#2, EVENT 8.4, BRIDGE 4.2.2 #2-#3).
func TestCorpus(t *testing.T) {
	t.Parallel()
	for _, c := range readCorpus(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := schema.Valid([]byte(c.text)); got != c.accept {
				t.Errorf("Valid = %t, want %t", got, c.accept)
			}
			for _, d := range dialects {
				for _, around := range [][2]string{{"", ""}, {`{"payload":`, `}`}, {`[0,{"x":`, `}]`}} {
					data := around[0] + c.text + around[1]
					checkVerdict(t, d, in(d, `{"@kind":"query","@type":"Syscall.Ping","@data":`)+data+`,"metadata":`+metadata+`}`, data, c.accept)
					checkVerdict(t, d, in(d, `{"metadata":`+metadata+`,"@type":"Syscall.Ping","@kind":"query","@data":`)+data+`}`, data, c.accept)
				}
			}
		})
	}
}

func checkVerdict(t *testing.T, d schema.Dialect, frame, data string, accept bool) {
	t.Helper()
	m, err := schema.Decode([]byte(frame), d)
	if !accept {
		if err == nil || err.Kind != fault.InvalidJSON || err.Code() != 400 || err.EventCode() != "INVALID_JSON" {
			t.Errorf("Decode(%q) = %v, want Invalid JSON", frame, err)
		}
		return
	}
	if err != nil {
		t.Errorf("Decode(%q) = %v", frame, err)
	} else if want := bytes.Trim([]byte(data), " \t\r"); !bytes.Equal(m.Data, want) {
		t.Errorf("Decode(%q): data %q, want %q", frame, m.Data, want)
	}
}
