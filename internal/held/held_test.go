package held

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestTooMany: a project with more directories than are searched is refused, since an agent could have made them.
func TestTooMany(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(dir, ".env"), nil, 0o600))
	for i := range 9 {
		testkit.Must(t, os.Mkdir(filepath.Join(dir, strconv.Itoa(i)), 0o700))
	}
	if found, err := below(dir, 10); err != nil || !slices.Equal(found.Hidden, []string{filepath.Join(dir, ".env")}) {
		t.Errorf("got %v, %v", found, err)
	}
	if found, err := below(dir, 9); !errors.Is(err, ErrTooMany) || !strings.Contains(err.Error(), "pwos project allow") {
		t.Errorf("got %v, %v, want a refusal", found, err)
	}
}

// TestNamed: templates are shown.
func TestNamed(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		".env": true, ".ENV": true, ".env.local": true, ".env.example.local": true, ".envrc": true, ".env~": true, ".env-prod": true, ".env.": true, ".envexample": true,
		".env.example": false, ".env-sample": false, ".env_template": false, ".env.local.dist": false, ".ENV.Example": false, "env": false, "x.env": false, ".en": false, "": false,
	} {
		if Named(name) != want {
			t.Errorf("%q is held: %t", name, !want)
		}
	}
}

// TestProject: the project ends below a home directory, and below a directory where others may make a repository.
func TestProject(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	home, open := filepath.Join(top, "home"), filepath.Join(top, "open")
	for _, dir := range []string{"home/.git", "home/a/.git", "home/a/b/c/.git", "open/.git", "open/a/b/.git", "open/x"} {
		testkit.Must(t, os.MkdirAll(filepath.Join(top, dir), 0o755))
	}
	testkit.Must(t, os.Chmod(open, 0o777))
	for dir, want := range map[string]string{
		home + "/a/b/c": home + "/a", home + "/a": home + "/a", open + "/a/b": open + "/a/b", open + "/x": open + "/x", open: open,
	} {
		if got := Project(dir, []string{home}); got != want {
			t.Errorf("the project of %s is %s, want %s", dir, got, want)
		}
	}
}

// TestOutside: what programs outside run is found by its path, in any case, as a directory above it, and as a link.
func TestOutside(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		".envrc": ".envrc", "a/b/.ENVRC": "a/b/.ENVRC", ".vscode/tasks.json": ".vscode/tasks.json", "a/.VSCode/Settings.json": "a/.VSCode/Settings.json",
		".idea": ".idea", "a/.idea/x/y.xml": "a/.idea", ".mcp.json": ".mcp.json", ".claude/settings.local.json": ".claude/settings.local.json",
		".gemini/settings.json": ".gemini/settings.json", "a/.qwen/settings.json": "a/.qwen/settings.json", "opencode.jsonc": "opencode.jsonc", ".opencode/plugin/x.js": ".opencode/plugin",
		".pi/extensions/x.ts": ".pi/extensions", ".opencode/package.json": "", "pi/extensions": "",
		".exrc": ".exrc", "a/.NVIM.lua": "a/.NVIM.lua", "vimrc": "",
		".codex/config.toml": ".codex", "/abs/.pwos.toml": "/abs/.pwos.toml", ".vscode": ".vscode", "a/.claude": "a/.claude",
		"": "", "tasks.json": "", "a/tasks.json": "", ".vscode/launch.json": "", ".vscode/x/tasks.json": "", ".claude/commands/x.md": "", "envrc": "", ".envrc.x": "", "x.idea": "", "settings.json/x": "",
	} {
		if got := Outside(path, false); got != want {
			t.Errorf("of %q it is %q, want %q", path, got, want)
		}
	}
	if got := Outside("a/.vscode", true); got != "" {
		t.Errorf("a directory is %q", got)
	}
	for path, want := range map[string]bool{"package.json": true, "a/Makefile": true, "a/CLAUDE.md": true, "sub/.git": true, "a/makefile/x": false, "package.json5": false, "": false} {
		if Marked(path) != want {
			t.Errorf("%q is marked: %t", path, !want)
		}
	}
}

// TestSearch: files are found as deep as the search goes, below it in a directory that only such files need, and through links.
func TestSearch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{".mcp.json", ".idea/x", "a/b/c/.vscode/tasks.json", "a/b/c/d/.mcp.json", "a/b/c/d/.vscode/tasks.json", "node_modules/.mcp.json", "a/x/settings.json", "b/target"} {
		testkit.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		testkit.Must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	testkit.Must(t, os.Symlink("x", filepath.Join(dir, "a", ".vscode")))
	testkit.Must(t, os.Symlink("target", filepath.Join(dir, "b", ".pwos.toml")))
	testkit.Must(t, os.Symlink("nowhere", filepath.Join(dir, ".codex")))
	found, err := Search(dir, nil)
	testkit.Must(t, err)
	var got []string
	for _, path := range found.Outside {
		rel, err := filepath.Rel(dir, path)
		testkit.Must(t, err)
		got = append(got, rel)
	}
	want := []string{".codex", ".idea", ".mcp.json", "a/.vscode", "a/b/c/.vscode/tasks.json", "a/x/settings.json", "b/.pwos.toml", "b/target"}
	if !slices.Equal(got, want) || found.Hidden != nil {
		t.Errorf("got %q and %q, want %q", got, found.Hidden, want)
	}
}
