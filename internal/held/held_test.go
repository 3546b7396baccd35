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
	if list, err := search(dir, 10); err != nil || !slices.Equal(list, []string{filepath.Join(dir, ".env")}) {
		t.Errorf("got %v, %v", list, err)
	}
	if list, err := search(dir, 9); !errors.Is(err, ErrTooMany) || !strings.Contains(err.Error(), "pwos project allow") {
		t.Errorf("got %v, %v, want a refusal", list, err)
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
