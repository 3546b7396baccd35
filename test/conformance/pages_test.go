package conformance_test

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// prose returns the pages of the docs without their code blocks.
func prose(t *testing.T) map[string]string {
	t.Helper()
	files := testkit.Value(filepath.Glob("../../docs/*.md"))(t)
	pages := make(map[string]string)
	for _, file := range append(files, "../../README.md", "../../CONTRIBUTING.md") {
		text := testkit.Value(os.ReadFile(file))(t)
		pages[file] = regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(string(text), "")
	}
	return pages
}

var (
	heading  = regexp.MustCompile(`(?m)^(##+) (.*)$`)
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	unlinked = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchor is the fragment by which a page's readers find a heading.
func anchor(title string) string {
	return strings.ReplaceAll(unlinked.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
}

// TestLinks: what the pages link to is there.
func TestLinks(t *testing.T) {
	t.Parallel()
	pages := prose(t)
	for page, text := range pages {
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			to, err := url.Parse(found[1])
			if err != nil || to.Scheme != "" {
				continue // of the network nothing is asked
			}
			file := page
			if to.Path != "" {
				file = filepath.Join(filepath.Dir(page), to.Path)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links to %s: %v", page, found[1], err)
			}
			if to.Fragment == "" {
				continue
			}
			if !slices.ContainsFunc(heading.FindAllStringSubmatch(pages[file], -1), func(h []string) bool { return anchor(h[2]) == to.Fragment }) {
				t.Errorf("%s links to %s: no such heading", page, found[1])
			}
		}
	}
}

// TestSourceFiles: the source files that a page of the docs names exist.
func TestSourceFiles(t *testing.T) {
	t.Parallel()
	exists := make(map[string]bool)
	testkit.Must(t, filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		path = strings.TrimPrefix(filepath.ToSlash(path), "../../")
		exists[path], exists[filepath.Base(path)] = true, true
		return err
	}))
	named := regexp.MustCompile("`([\\w./]+\\.go)`")
	for page, text := range prose(t) {
		if !strings.HasPrefix(page, "../../docs/") {
			continue // CONTRIBUTING.md names files that its reader is to write
		}
		for _, found := range named.FindAllStringSubmatch(text, -1) {
			if !exists[found[1]] {
				t.Errorf("%s names %s: no such file", page, found[1])
			}
		}
	}
}

// TestIndexes: a page of more than a hundred lines begins with links to its sections.
func TestIndexes(t *testing.T) {
	t.Parallel()
	for page, text := range prose(t) {
		if strings.Count(text, "\n") <= 100 || strings.HasSuffix(page, "/README.md") || strings.HasSuffix(page, "/errors.md") {
			continue
		}
		before, _, _ := strings.Cut(text, "\n## ")
		for _, h := range heading.FindAllStringSubmatch(text, -1) {
			if h[1] == "##" && !strings.Contains(before, "](#"+anchor(h[2])+")") {
				t.Errorf("%s: no link to %q before the first section", page, h[2])
			}
		}
	}
}
