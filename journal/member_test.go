package journal_test

import (
	"strings"
	"testing"

	"github.com/promptware-os/pwos/journal"
)

// A pointer finds exactly the member that it names, at any depth, and nothing if it is malformed or ambiguous.
func TestMember(t *testing.T) {
	t.Parallel()
	const text = `{"a":{"b":[1, "x" ,{"c/d":true,"e~f":null}],"":"empty"},"n\u0061me":"v","twice":1,"twice":2}`
	for pointer, want := range map[string]string{
		"": text, "/a/b/0": "1", "/a/b/1": `"x"`, "/a/b/2/c~1d": "true", "/a/b/2/e~0f": "null", "/a/": `"empty"`, "/name": `"v"`,
		"/a/b": `[1, "x" ,{"c/d":true,"e~f":null}]`,
		"a":    "-", "/": "-", "/a/b/3": "-", "/a/b/-1": "-", "/a/b/-": "-", "/a/b/01": "-", "/a/b/99999999999999999999": "-",
		"/a/b/0/x": "-", "/twice": "-", "/a/b/2/c~d": "-", "/a/b/2/e~": "-", "/A": "-", "/a/b/2/c/d": "-", "//a": "-",
	} {
		got := "-"
		if start, end, ok := journal.Member([]byte(text), pointer); ok {
			got = text[start:end]
		}
		if got != want {
			t.Errorf("%q names %s, want %s", pointer, got, want)
		}
	}
	deep := strings.Repeat(`{"a":`, 120) + `"x"` + strings.Repeat("}", 120)
	if start, end, ok := journal.Member([]byte(deep), strings.Repeat("/a", 120)); !ok || deep[start:end] != `"x"` {
		t.Errorf("deep member: %d, %d, %v", start, end, ok)
	}
	if _, _, ok := journal.Member([]byte(strings.Repeat("[", 1000)), "/0"); ok {
		t.Error("found a member of no JSON")
	}
}
