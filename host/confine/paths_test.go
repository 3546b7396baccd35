package confine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestRelative: a directory contains itself and paths that continue with a slash after its own, and no others.
func TestRelative(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		path, dir, rel string
		lies           bool
	}{
		{"/a/b", "/a", "b", true},
		{"/a/b/c", "/a", "b/c", true},
		{"/a", "/a", ".", true},
		{"/a", "/", "a", true},
		{"/", "/", ".", true},
		{"/ab", "/a", "", false},
		{"/a", "/a/b", "", false},
		{"/", "/a", "", false},
		{"/a", "", "", false},
		{"", "/", "", false},
		{"/a", "net:[4026531840]", "", false},
		{"net:[4026531840]", "/", "", false},
	} {
		rel, lies := relative(test.path, test.dir)
		if lies != test.lies || lies && rel != test.rel {
			t.Errorf("%q from %q: %q, %t", test.path, test.dir, rel, lies)
		}
	}
}

// TestResolver: links in existing names are resolved; other names stay.
func TestResolver(t *testing.T) {
	t.Parallel()
	dir := canonical(t.TempDir())
	testkit.Must(t, os.MkdirAll(filepath.Join(dir, "real/sub"), 0o700))
	for from, to := range map[string]string{"link": "real", "broken": "nowhere"} {
		testkit.Must(t, os.Symlink(to, filepath.Join(dir, from)))
	}
	places := newResolver()
	for name, want := range map[string]string{
		"real/sub": "real/sub", "link": "real", "link/sub": "real/sub", "link/absent": "real/absent", "absent/sub/sub": "absent/sub/sub", "absent/sub": "absent/sub", "broken": "broken",
	} {
		if got := places.canonical(filepath.Join(dir, name)); got != filepath.Join(dir, want) || got != canonical(filepath.Join(dir, name)) {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}
