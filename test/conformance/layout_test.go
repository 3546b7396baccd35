package conformance_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestLayout: the text of the docs has lines of at most 100 columns, except for those that cannot be broken.
func TestLayout(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../../README.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		code, generated := false, strings.HasSuffix(page, "/errors.md")
		for i, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				code = !code
			}
			if code || generated || strings.HasPrefix(line, "|") || strings.ContainsAny(line, "`]") {
				continue
			}
			if n := utf8.RuneCountInString(line); n > 100 {
				t.Errorf("%s:%d: %d columns", page, i+1, n)
			}
		}
	}
}
