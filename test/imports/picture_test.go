package imports_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/test/imports"
)

var update = flag.Bool("update", false, "write the picture into docs/architecture.md")

// TestPicture compares the picture in docs/architecture.md with the imports. An arrow leads from a directory to one that it
// imports; arrows that follow from others are omitted.
func TestPicture(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	tree, err := imports.Load(root)
	testkit.Must(t, err)
	name := filepath.Join(root, "docs", "architecture.md")
	text := testkit.ReadFile(t, name)
	block := regexp.MustCompile("(?s)```mermaid\n.*?```\n")
	want := block.ReplaceAllLiteralString(text, "```mermaid\n"+picture(t, tree.Graph())+"```\n")
	if !block.MatchString(text) {
		t.Fatalf("%s has no picture", name)
	}
	if *update {
		testkit.Must(t, os.WriteFile(name, []byte(want), 0o644))
		return
	}
	if text != want {
		t.Errorf("the picture in %s is not that of the imports: go test ./test/imports -run TestPicture -update", name)
	}
}

// picture draws top-level directories as a Mermaid flowchart.
func picture(t *testing.T, packages map[string]map[string]bool) string {
	edges := make(map[string]map[string]bool)
	for from, to := range packages {
		a, shown := folder(from)
		if !shown {
			continue
		}
		if edges[a] == nil {
			edges[a] = make(map[string]bool)
		}
		for own := range to {
			if b, shown := folder(own); shown && a != b {
				edges[a][b] = true
			}
		}
	}
	reach := make(map[string]map[string]bool)
	var below func(string, ...string) map[string]bool
	below = func(of string, above ...string) map[string]bool {
		if slices.Contains(above, of) {
			t.Fatalf("folders import each other: %v", append(above, of))
		}
		if reach[of] == nil {
			all := maps.Clone(edges[of])
			for next := range edges[of] {
				maps.Copy(all, below(next, append(above, of)...))
			}
			reach[of] = all
		}
		return reach[of]
	}
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for _, from := range slices.Sorted(maps.Keys(edges)) {
		below(from)
		for _, to := range slices.Sorted(maps.Keys(edges[from])) {
			direct := true
			for other := range edges[from] {
				direct = direct && !below(other)[to]
			}
			if direct {
				fmt.Fprintf(&b, "    %s --> %s\n", from, to)
			}
		}
	}
	return b.String()
}

// folder returns the top-level directory of a package, or the package itself if it adapts that directory to higher layers.
// Tests, examples and internal packages are not shown.
func folder(pkg string) (name string, shown bool) {
	if pkg == "access/keyed" || pkg == "host/programs" {
		return pkg, true
	}
	name, _, _ = strings.Cut(pkg, "/")
	return name, name != "." && name != "test" && name != "internal" && name != "examples"
}
