package conformance_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestTried holds the procedures of docs/operations.md to what tries them: each section about one names its script or its
// test, and that is there.
func TestTried(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	page := testkit.ReadFile(t, filepath.Join(root, "docs/operations.md"))
	named := regexp.MustCompile("`(test/[a-z/]+\\.txtar)`|`go test (\\./[a-z/]+) -run (Test\\w+)`")
	declared := func(dir, test string) bool {
		files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
		testkit.Must(t, err)
		for _, file := range files {
			if strings.Contains(testkit.ReadFile(t, file), "\nfunc "+test+"(") {
				return true
			}
		}
		return false
	}
	for _, what := range []string{"Rotation", "Backup and restore", "Moving to another host", "Upgrading", "Upgrading a cluster", "Archive", "Removing a secret", "Copies"} {
		_, line, found := strings.Cut(page, "\n"+what+" is tried by ")
		if !found {
			_, line, found = strings.Cut(page, "\n"+what+" are tried by ")
		}
		line, _, _ = strings.Cut(line, "\n\n")
		tries := named.FindAllStringSubmatch(line, -1)
		if !found || len(tries) == 0 {
			t.Errorf("%s: docs/operations.md does not say what tries it", what)
		}
		for _, try := range tries {
			if try[1] != "" {
				if _, err := os.Stat(filepath.Join(root, try[1])); err != nil {
					t.Error(err)
				}
			} else if !declared(try[2], try[3]) {
				t.Errorf("%s: %s has no %s", what, try[2], try[3])
			}
		}
	}
}
