package transparent_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestDocumented: the table in docs/agents.md has the rows that situations need, and no other one; they are fewer than ten.
func TestDocumented(t *testing.T) {
	t.Parallel()
	_, section, _ := strings.Cut(testkit.ReadFile(t, "../../docs/agents.md"), "\n### What differs\n")
	section, _, _ = strings.Cut(section, "\n#")
	var rows []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-z ]+) \|.*\|.*\|$`).FindAllStringSubmatch(section, -1) {
		rows = append(rows, row[1])
	}
	rows = rows[min(len(rows), 1):] // the first one has the titles
	if !slices.Equal(rows, allowed) {
		t.Errorf("the page has rows for %q, and what may differ is %q", rows, allowed)
	}
	if len(rows) >= 10 {
		t.Errorf("%d rows, want fewer than ten", len(rows))
	}
	needed := make(map[string]bool)
	for _, s := range all() {
		needed[s.differs] = true
		if s.differs != "" && !slices.Contains(allowed, s.differs) {
			t.Errorf("%s\nmay not differ: there is no row %q", s.line, s.differs)
		}
	}
	for _, row := range allowed {
		if !needed[row] {
			t.Errorf("no situation needs the row %q", row)
		}
	}
}
