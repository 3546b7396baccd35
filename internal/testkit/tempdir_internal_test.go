package testkit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTempDir: TMPDIR is a directory that other tests do not remove while it is in use, and remove after its process was killed. If a file
// is left in it, its end is an error. The test does not run in parallel, because it sets TMPDIR.
func TestTempDir(t *testing.T) {
	before, set := os.LookupEnv("TMPDIR")
	t.Cleanup(func() {
		if Must(t, os.Unsetenv("TMPDIR")); set {
			Must(t, os.Setenv("TMPDIR", before))
		}
	})
	parent := Dir(t)
	abandoned := filepath.Join(parent, tempPrefix+"1")
	Must(t, os.MkdirAll(filepath.Join(abandoned, "place"), 0o700))
	other := filepath.Join(parent, "other")
	Must(t, os.Mkdir(other, 0o700))

	first := Value(setTempDir(parent))(t)
	inUse := os.TempDir()
	second := Value(setTempDir(parent))(t)
	for dir, want := range map[string]bool{abandoned: false, other: true, inUse: true, os.TempDir(): true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", dir, err == nil, want)
		}
	}
	if inUse == os.TempDir() {
		t.Errorf("both use %s", inUse)
	}
	Must(t, first())
	WriteFile(t, filepath.Join(os.TempDir(), "left"), "")
	if err := second(); err == nil || !strings.Contains(err.Error(), "/left") {
		t.Errorf("a file that was left: %v", err)
	}
	if left := Value(filepath.Glob(filepath.Join(parent, "*")))(t); len(left) != 1 || left[0] != other {
		t.Errorf("left: %q", left)
	}
}
