package conformance_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestReadingTheSource checks README's "Reading the source": each file that it names exists, and declares the functions and
// types that are named with it.
func TestReadingTheSource(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	_, section, _ := strings.Cut(testkit.ReadFile(t, filepath.Join(root, "README.md")), "## Reading the source\n")
	section, _, _ = strings.Cut(section, "\n## ")
	stops := regexp.MustCompile(`(?m)^\d+\. `).Split(section, -1)
	if len(stops) != 11 {
		t.Errorf("%d stops, want 10", len(stops)-1)
	}
	place := regexp.MustCompile("\\]\\(([a-z/]+\\.go)\\),\\s+((?:`\\w+`(?: and )?)+)")
	for _, stop := range stops[1:] {
		places := place.FindAllStringSubmatch(stop, -1)
		if len(places) == 0 {
			t.Errorf("no file and function in %q", stop)
		}
		for _, p := range places {
			source, err := os.ReadFile(filepath.Join(root, p[1]))
			if err != nil {
				t.Error(err)
				continue
			}
			for name := range strings.SplitSeq(p[2], " and ") {
				name = strings.Trim(name, "`")
				if !regexp.MustCompile(`(?m)^(func (\(\w+ \*?\w+\) )?|type )` + name + `\b`).Match(source) {
					t.Errorf("%s declares no %s", p[1], name)
				}
			}
		}
	}
}
