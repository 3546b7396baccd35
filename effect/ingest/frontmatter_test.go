package ingest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/effect/ingest"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestSplitFrontMatter checks which texts have front matter, and where it ends.
func TestSplitFrontMatter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, front, content string
		fence                byte
	}{
		{"", "", "", 0},
		{"text", "", "text", 0},
		{"---\na: 1\n---\ntext\n", "a: 1\n", "text\n", '-'},
		{"---\r\na: 1\r\n---\r\ntext", "a: 1\r\n", "text", '-'},
		{"--- \na: 1\n---\t\ntext", "a: 1\n", "text", '-'},
		{"---\na: 1\n...\ntext", "a: 1\n", "text", '-'},
		{"---\n---", "", "", '-'},
		{"---\na: |\n  ---\n---\nb", "a: |\n  ---\n", "b", '-'},
		{"---\n---\n---\n", "", "---\n", '-'},
		{"+++\na = 1\n+++\ntext", "a = 1\n", "text", '+'},
		{"+++\na = \"\"\"\n---\n...\n\"\"\"\n+++\n", "a = \"\"\"\n---\n...\n\"\"\"\n", "", '+'},
		{"\n---\na: 1\n---\n", "", "\n---\na: 1\n---\n", 0},
		{" ---\na: 1\n---\n", "", " ---\na: 1\n---\n", 0},
		{"----\n", "", "----\n", 0},
		{"--- a\n---\n", "", "--- a\n---\n", 0},
	} {
		front, content, fence, err := ingest.SplitFrontMatter([]byte(c.text))
		if err != nil || string(front) != c.front || string(content) != c.content || fence != c.fence {
			t.Errorf("%q: %q, %q, %q, %v", c.text, front, content, fence, err)
		}
	}
	for _, text := range []string{"---", "---\n", "---\na: 1\n", "---\na: 1\n+++\n", "+++\n...\n---\n", "---\n" + strings.Repeat("a: 1\n", ingest.MaxFrontMatter/5+1) + "---\n"} {
		if _, _, _, err := ingest.SplitFrontMatter([]byte(text)); !errors.Is(err, fault.IngestInvalid) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

// TestYAML checks the JSON of valid YAML.
func TestYAML(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                      `{}`,
		"\n \n":                                 `{}`,
		"# nothing\n":                           `{}`,
		"{}":                                    `{}`,
		"b: 1\na: 2":                            `{"b":1,"a":2}`,
		"a: x y":                                `{"a":"x y"}`,
		"a: 'it''s'":                            `{"a":"it's"}`,
		`a: "\u00fc\n"`:                         `{"a":"ü\n"}`,
		"a:":                                    `{"a":null}`,
		"a: ~":                                  `{"a":null}`,
		"a: [true, False, null, yes, on, 'no']": `{"a":[true,false,null,"yes","on","no"]}`,
		"a: 1.10":                               `{"a":1.10}`,
		"a: -1e3":                               `{"a":-1e3}`,
		"a: 12345678901234567890123":            `{"a":12345678901234567890123}`,
		"a: '1'":                                `{"a":"1"}`,
		"a: 1.2.3":                              `{"a":"1.2.3"}`,
		"a: 2025-12-24":                         `{"a":"2025-12-24"}`,
		"a:\n- b\n- c: d\n  e: f\n":             `{"a":["b",{"c":"d","e":"f"}]}`,
		"a: |\n  x\n  y\n":                      `{"a":"x\ny\n"}`,
		"a: >\n  x\n  y\n":                      `{"a":"x y\n"}`,
		"a: os:///x":                            `{"a":"os:///x"}`,
		"'true': 1":                             `{"true":1}`,
	} {
		got, err := ingest.YAML([]byte(text))
		if err != nil || string(got) != want {
			t.Errorf("%q: %s, %v, want %s", text, got, err, want)
		}
	}
}

// TestYAMLRefuses checks that YAML that is ambiguous, or expands when it is parsed, is refused.
func TestYAMLRefuses(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 40) + strings.Repeat("]", 40)
	for _, text := range []string{
		"- a", "a", "1", "a: 1\na: 2", "a: {b: 1, b: 2}", "1: a", "true: a", "~: a", "[a]: b", "? {a: b}\n: c",
		"a: &x 1\nb: *x", "a: &x {b: 1}\nc:\n  <<: *x", "&x a: 1", "<<: {a: 1}", "a: !!binary aGk=", "a: !x y", "!!str a: b", "!!map {}", "a: !!str 1",
		"a: 0x1f", "a: 0o17", "a: 012", "a: 1_000", "a: +1", "a: .5", "a: 1.", "a: .inf", "a: -.inf", "a: .nan", "a: 0b1",
		"a: 1\n---\nb: 2", "--- a", "a: 1\n--- b", "a: " + deep, "a: [", "a: \"", "\ta: 1", "a: \xff", "a: \x00", "%YAML 9.9\n---\na: 1",
	} {
		if got, err := ingest.YAML([]byte(text)); !errors.Is(err, fault.IngestInvalid) {
			t.Errorf("%.40q: %s, %v", text, got, err)
		} else if len(err.Error()) > 300 {
			t.Errorf("%.40q: the error has %d bytes", text, len(err.Error()))
		}
	}
	_, err := ingest.YAML([]byte("a: 1\nb:\n  c: 0x1f\n"))
	if err == nil || !strings.Contains(err.Error(), "line 4") {
		t.Errorf("%v does not say the line of the file", err)
	}
}

// TestTOML checks the JSON of TOML: members are sorted, dates are strings.
func TestTOML(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                   `{}`,
		"b = 1\na = 'x'":                     `{"a":"x","b":1}`,
		"a = [1.5, 2.0]\n[b]\nc = true":      `{"a":[1.5,2],"b":{"c":true}}`,
		"a = 2025-12-24":                     `{"a":"2025-12-24"}`,
		"a = 2025-12-24T01:02:03Z":           `{"a":"2025-12-24T01:02:03Z"}`,
		"[[t]]\nuri = 'x'\n[[t]]\nuri = 'y'": `{"t":[{"uri":"x"},{"uri":"y"}]}`,
	} {
		got, err := ingest.TOML([]byte(text))
		if err != nil || string(got) != want {
			t.Errorf("%q: %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"a", "a = 1\na = 2", "a = inf", "a = nan", "a = [" + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "]", strings.Repeat("a.", 40) + "a = 1"} {
		if got, err := ingest.TOML([]byte(text)); !errors.Is(err, fault.IngestInvalid) {
			t.Errorf("%.40q: %s, %v", text, got, err)
		}
	}
}

// FuzzFrontMatter checks that the result of any front matter is a strict JSON object or an error.
func FuzzFrontMatter(f *testing.F) {
	for _, seed := range []string{"a: 1", "a: [b, {c: d}]", "a = 1", "[[t]]\nu = 'x'", "a: &x 1\nb: *x", "? a\n: b", "a: |\n x", "%TAG ! x\n---\na: 1", "# x"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, front []byte) {
		for name, read := range map[string]func([]byte) ([]byte, error){"yaml": ingest.YAML, "toml": ingest.TOML} {
			got, err := read(front)
			switch {
			case err != nil && !errors.Is(err, fault.IngestInvalid):
				t.Fatalf("%s: %v", name, err)
			case err == nil && (!schema.Valid(got) || got[0] != '{'):
				t.Fatalf("%s: %s", name, got)
			}
		}
	})
}
