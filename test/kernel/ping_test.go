package kernel_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// echo sends payload through Ping in both dialects and checks that it comes back byte for byte.
func echo(c *wire, name, payload string) {
	c.t.Helper()
	c.send(ping("m", payload) + eventPing("e", payload))
	for _, id := range []string{"m", "e"} {
		m := c.next()
		if want := `{"payload":` + payload + `}`; m.Kind != schema.KindReply || m.Meta.Causation != id || string(m.Data) != want {
			c.t.Errorf("%s, %s: got %s %.200s, want %.200s", name, m.Dialect, m.Kind, m.Data, want)
		}
	}
}

// TestPingBytes shows that a payload comes back byte for byte, through the whole kernel (MESSAGE 8.4).
func TestPingBytes(t *testing.T) {
	t.Parallel()
	d := start(t)
	// Envelope and data are two levels of the frame.
	payloads := []string{
		"12345678901234567890", "1e400", "-0", "-0.0e-0", "0.1000", `"\u0000"`, `"\ud83d\ude00\/\b"`, "[ 1 ,\t2 ]", `{"b":1,"a":{"b":2}}`,
		`""`, "null", "true", nest(schema.MaxDepth - 2),
	}
	for socket := range d.sockets() {
		c := d.wire(t, socket)
		for _, p := range payloads {
			echo(c, p, p)
		}
	}
}

// TestPingUnicode sends every character that UTF-8 can encode, literally and escaped.
func TestPingUnicode(t *testing.T) {
	t.Parallel()
	c := start(t).wire(t, "kernel.sock")
	const chunk = 1024
	for first := rune(0); first <= utf8.MaxRune; first += chunk {
		var plain, escaped strings.Builder
		for r := first; r < first+chunk; r++ {
			if !utf8.ValidRune(r) {
				continue
			}
			if r > 0xffff {
				continue // written plain below; escaped they are pairs
			}
			fmt.Fprintf(&escaped, `\u%04x`, r)
			if r >= ' ' && r != '"' && r != '\\' {
				plain.WriteRune(r)
			}
		}
		for r := max(first, 0x10000); r < first+chunk && r <= utf8.MaxRune; r++ {
			plain.WriteRune(r)
		}
		echo(c, fmt.Sprintf("U+%04X", first), `"`+plain.String()+`"`)
		echo(c, fmt.Sprintf("U+%04X escaped", first), `"`+escaped.String()+`"`)
	}
}

// TestCorpus sends each text of the corpus of package schema as a payload over both sockets. It checks that each has one
// answer: 400 for every must-refuse, and the same bytes for everything else.
func TestCorpus(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../schema/testdata/json-corpus/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("list corpus: %v, %d files", err, len(files))
	}
	d := start(t)
	for socket, fallback := range d.sockets() {
		c := d.wire(t, socket)
		for _, file := range files {
			content, err := os.ReadFile(file)
			testkit.Must(t, err)
			for line := range strings.Lines(string(content)) {
				words := strings.SplitN(strings.TrimSpace(line), " ", 3)
				if len(words) < 3 || words[0] == "#" {
					continue
				}
				text, err := strconv.Unquote(words[2])
				if err != nil {
					t.Fatalf("%s: %v", words[1], err)
				}
				if words[0] == "accept" {
					echo(c, words[1], strings.TrimSpace(text))
					continue
				}
				c.send(ping("m", text) + ping("after", "1"))
				m := c.next()
				want := `"code":400`
				if fallback == schema.OsEvent {
					want = `"code":"INVALID_JSON"`
				}
				if m.Kind != schema.KindError || !strings.Contains(string(m.Data), want) {
					t.Errorf("%s: got %s %s, want it refused", words[1], m.Kind, m.Data)
				}
				if m := c.next(); m.Meta.Causation != "after" {
					t.Fatalf("%s: a second answer came: %s", words[1], m.Data)
				}
			}
		}
	}
}
