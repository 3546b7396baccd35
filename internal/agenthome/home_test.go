package agenthome_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/agenthome"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestNames: each name has a home of its own, directly in the store, and List shows the name.
func TestNames(t *testing.T) {
	t.Parallel()
	store := agenthome.Store(filepath.Join(t.TempDir(), "homes"))
	long := strings.Repeat("é", 200)
	names := []string{"claude", "planner/writer", "planner%2Fwriter", "..", ".", ".hidden", "%2E.", "%seeds", "%renewals", "%cache", "%users", "%", long, long + "x"}
	paths := make(map[string]string)
	for _, name := range names {
		home, err := store.Open(name)
		testkit.Must(t, err)
		testkit.Must(t, home.Prepare(nil))
		testkit.Must(t, home.Close())
		if other, taken := paths[home.Path]; taken || filepath.Dir(home.Path) != string(store) || home.Path != store.Path(name) {
			t.Errorf("%q is %s, as is %q", name, home.Path, other)
		}
		paths[home.Path] = name
	}
	_, err := store.Cache()
	testkit.Must(t, err)
	listed, err := store.List()
	testkit.Must(t, err)
	if len(listed) != len(names) {
		t.Errorf("got %q", listed)
	}
	for _, name := range names[:len(names)-2] {
		if !slices.Contains(listed, name) {
			t.Errorf("%q is not listed: %q", name, listed)
		}
	}
	for _, name := range listed { // also as a name that was too long is listed
		testkit.Must(t, store.Remove(name))
	}
	if left, err := store.List(); err != nil || len(left) > 0 {
		t.Errorf("left %q, %v", left, err)
	}
	for _, name := range []string{"none", "..", "a/b", "%seeds", "%renewals", "%cache", "%users"} {
		if err := store.Remove(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("remove %q: %v", name, err)
		}
	}
}

// TestRenew: whatever an agent has left in its home, what programs read at a start is renewed, and nothing outside is
// touched.
func TestRenew(t *testing.T) {
	t.Parallel()
	const git = "[user]\n"
	for name, leave := range map[string]func(t *testing.T, home, outside string) error{
		"nothing": func(*testing.T, string, string) error { return nil },
		"files": func(t *testing.T, home, _ string) error {
			for _, file := range []string{".bashrc", ".gitconfig", ".config/git/config", ".config/fish/conf.d/x.fish", ".local/share/fish/vendor_conf.d/x.fish", ".docker/cli-plugins/docker-x", "tools/ls", ".local/lib/python3.12/site-packages/x.pth"} {
				testkit.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(home, file)), 0o700))
				testkit.Must(t, os.WriteFile(filepath.Join(home, file), []byte("evil"), 0o700))
			}
			return nil
		},
		"a link for a file": func(_ *testing.T, home, outside string) error { return os.Symlink(outside+"/file", home+"/.gitconfig") },
		"a link for a directory": func(t *testing.T, home, outside string) error {
			return errors.Join(os.Symlink(outside, home+"/.config"), os.Symlink(outside, home+"/.host"), os.Symlink(outside, home+"/.local"))
		},
		"a hard link":        func(_ *testing.T, home, outside string) error { return os.Link(outside+"/file", home+"/.gitconfig") },
		"a FIFO":             func(_ *testing.T, home, _ string) error { return syscall.Mkfifo(home+"/.gitconfig", 0o600) },
		"a link in the home": func(_ *testing.T, home, _ string) error { return os.Symlink("cache", home+"/.gitconfig") },
		"a file longer than memory": func(_ *testing.T, home, _ string) error {
			return errors.Join(os.WriteFile(home+"/.gitconfig", nil, 0o600), os.Truncate(home+"/.gitconfig", 1<<42))
		},
		"directories for files": func(_ *testing.T, home, _ string) error {
			return errors.Join(os.MkdirAll(home+"/.gitconfig/x", 0o700), os.MkdirAll(home+"/.host/settings/x", 0o700))
		},
		"a file for a directory": func(_ *testing.T, home, _ string) error { return os.WriteFile(home+"/.host", nil, 0o600) },
		"no rights": func(_ *testing.T, home, _ string) error {
			return errors.Join(
				os.MkdirAll(home+"/.config/git/x", 0o700), os.WriteFile(home+"/.config/git/x/y", nil, 0o600), os.Chmod(home+"/.config/git/x", 0), os.Chmod(home+"/.config", 0),
				os.WriteFile(home+"/.gitconfig", []byte("evil"), 0o600), os.Chmod(home+"/.gitconfig", 0o400),
			)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			outside := filepath.Join(dir, "outside")
			for _, file := range []string{"file", "git/config", "settings", "fish/config.fish"} {
				testkit.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(outside, file)), 0o700))
				testkit.Must(t, os.WriteFile(filepath.Join(outside, file), []byte("kept"), 0o600))
			}
			store := agenthome.Store(filepath.Join(dir, "homes"))
			home, err := store.Open("a")
			testkit.Must(t, err)
			defer home.Close()
			testkit.Must(t, os.WriteFile(filepath.Join(home.Path, "cache"), []byte("mine"), 0o600))
			testkit.Must(t, leave(t, home.Path, outside))
			testkit.Must(t, home.Prepare(map[string]string{".gitconfig": git, ".host/settings": "{}"}))
			testkit.Must(t, store.Renew(home.Path, "/usr/bin:"+filepath.Join(home.Path, "tools")))
			for file, want := range map[string]string{"homes/a/.gitconfig": git, "homes/a/.host/settings": "{}", "homes/a/cache": "mine", "outside/file": "kept", "outside/git/config": "kept", "outside/settings": "kept"} {
				if text, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(text) != want {
					t.Errorf("%s is %q, %v", file, text, err)
				}
			}
			for _, file := range []string{".bashrc", ".config/git", ".config/fish", ".local/share/fish/vendor_conf.d", ".docker/cli-plugins", "tools", ".local/lib/python3.12/site-packages/x.pth"} {
				if _, err := os.Stat(filepath.Join(home.Path, file)); !os.IsNotExist(err) {
					t.Errorf("%s is left: %v", file, err)
				}
			}
		})
	}
}

// TestNotRenewed: what is no home of the store, and one that no start was prepared for, stays as it is.
func TestNotRenewed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := agenthome.Store(filepath.Join(dir, "homes"))
	cache, err := store.Cache()
	testkit.Must(t, err)
	home, err := store.Open("a")
	testkit.Must(t, err)
	defer home.Close()
	below := filepath.Join(home.Path, "below")
	for _, at := range []string{home.Path, below, cache, dir} {
		testkit.Must(t, os.MkdirAll(filepath.Join(at, "bin"), 0o700))
		testkit.Must(t, os.WriteFile(filepath.Join(at, ".bashrc"), nil, 0o600))
		testkit.Must(t, store.Renew(at, filepath.Join(at, "bin")))
		testkit.Must(t, home.Prepare(nil)) // after the home itself
	}
	for _, at := range []string{home.Path, below, cache, dir} {
		for _, name := range []string{".bashrc", "bin"} {
			if _, err := os.Stat(filepath.Join(at, name)); err != nil {
				t.Error(err)
			}
		}
	}
	testkit.Must(t, store.Renew(filepath.Join(string(store), "none"), ""))
}

// TestMounted: a file that an agent with the same home may have mounted is not replaced by another.
func TestMounted(t *testing.T) {
	t.Parallel()
	store := agenthome.Store(t.TempDir())
	home, err := store.Open("a")
	testkit.Must(t, err)
	defer home.Close()
	for _, name := range []string{".gitconfig", ".config/pnpm/rc"} { // the second one in a directory that is renewed
		at, other := filepath.Join(home.Path, name), filepath.Join(home.Path, ".config/pnpm/other")
		var before os.FileInfo
		for _, text := range []string{"one", "one", "two"} {
			testkit.Must(t, home.Prepare(map[string]string{name: text}))
			testkit.Must(t, store.Renew(home.Path, ""))
			info, err := os.Stat(at)
			testkit.Must(t, err)
			if before != nil && !os.SameFile(before, info) {
				t.Errorf("%s: %q is another file", name, text)
			}
			before = info
			if _, err := os.Lstat(other); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: what an agent left beside it is there: %v", name, err)
			}
			testkit.Must(t, errors.Join(os.MkdirAll(filepath.Dir(other), 0o700), os.WriteFile(other, nil, 0o600)))
		}
		if text, err := os.ReadFile(at); err != nil || string(text) != "two" {
			t.Errorf("%s: got %q, %v", name, text, err)
		}
	}
}

// TestImport: an imported start file is there at each start, whatever the agent does; another is copied once.
func TestImport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := agenthome.Store(filepath.Join(dir, "homes"))
	home, err := store.Open("a")
	testkit.Must(t, err)
	defer home.Close()
	testkit.Must(t, home.Prepare(nil))
	from := filepath.Join(dir, "from")
	testkit.Must(t, os.WriteFile(from, []byte("mine"), 0o600))
	for _, name := range []string{".vimrc", ".config/fish/config.fish", "notes/x"} {
		testkit.Must(t, home.Import(from, name))
	}
	for range 2 {
		testkit.Must(t, store.Renew(home.Path, ""))
		for _, name := range []string{".vimrc", ".config/fish/config.fish", "notes/x"} {
			at := filepath.Join(home.Path, name)
			want := "mine"
			if text, err := os.ReadFile(at); err != nil || string(text) != want {
				t.Errorf("%s is %q, %v", name, text, err)
			}
			if name != "notes/x" {
				testkit.Must(t, os.WriteFile(at, []byte("evil"), 0o600))
			}
		}
	}
	if err := home.Import(dir, "x"); err == nil {
		t.Error("a directory was imported")
	}
}

// TestUsersHome: a directory that the user has named gets what is missing, and keeps the rest.
func TestUsersHome(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(dir, ".bashrc"), []byte("mine"), 0o600))
	home, err := agenthome.At(dir)
	testkit.Must(t, err)
	defer home.Close()
	testkit.Must(t, home.Prepare(map[string]string{".bashrc": "x", ".host/settings": "{}"}))
	for name, want := range map[string]string{".bashrc": "mine", ".host/settings": "{}"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(text) != want {
			t.Errorf("%s is %q, %v", name, text, err)
		}
	}
}

// TestNoHome: what is no directory is no home.
func TestNoHome(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(store, "file"), nil, 0o600))
	testkit.Must(t, os.Symlink(t.TempDir(), filepath.Join(store, "link")))
	for _, name := range []string{"file", "link"} {
		if _, err := agenthome.Store(store).Open(name); err == nil || !strings.Contains(err.Error(), "is no directory: remove it") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := agenthome.Store(filepath.Join(store, "file")).Open("a"); err == nil {
		t.Error("a home in a file")
	}
}

// TestRenewAtOnce: agents of one name that start at once, with a program that replaces the files meanwhile, all start.
func TestRenewAtOnce(t *testing.T) {
	t.Parallel()
	store := agenthome.Store(t.TempDir())
	home, err := store.Open("a")
	testkit.Must(t, err)
	defer home.Close()
	testkit.Must(t, home.Prepare(map[string]string{".config/x/y.yaml": "content", ".gitconfig": "x"}))
	over := make(chan struct{})
	var others, starts sync.WaitGroup
	others.Go(func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(time.Millisecond):
				_ = os.WriteFile(home.Path+"/new", []byte("other"), 0o600)
				_ = os.Rename(home.Path+"/new", home.Path+"/.config/x/y.yaml")
			}
		}
	})
	for range 8 {
		starts.Go(func() {
			for range 50 {
				if err := store.Renew(home.Path, ""); err != nil {
					t.Error(err)
				}
			}
		})
	}
	starts.Wait()
	close(over)
	others.Wait()
}

// TestAround: only what is in a home of the store is measured, by the home, whatever an agent says where its own is; and no longer than the
// agent runs.
func TestAround(t *testing.T) {
	t.Parallel()
	store := agenthome.Store(filepath.Join(t.TempDir(), "homes"))
	for at, want := range map[string]string{
		"/a": "/a", "/a/": "/a", "/a/b/c": "/a", "/./a/../c": "/c", "/%2Fa": "/%2Fa", "/%users/7/a/b": "/%users/7/a",
		"": "", "/": "", "/a/..": "", "/a/../..": "", "/a/../../../../..": "", "/../homes2/a": "", "/%cache/a": "", "/%seeds": "",
		"/%users": "", "/%users/7": "", "/%users/x/a": "", "/%users/7/../../..": "", "/%users/7/%cache/a": "",
	} {
		if want != "" {
			want = string(store) + want
		}
		if got := store.Around(string(store) + at); got != want {
			t.Errorf("%q: %q, want %q", at, got, want)
		}
	}
	if got := store.Around(""); got != "" {
		t.Errorf("no home: %q", got)
	}
	dir := store.Path("a")
	testkit.Must(t, errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "file"), make([]byte, 1<<16), 0o600)))
	done := make(chan struct{})
	before := agenthome.Size(dir, done)
	close(done)
	if after := agenthome.Size(dir, done); before < 1<<16 || after != 0 {
		t.Errorf("it has %d bytes, and %d after the end", before, after)
	}
}

// TestHomesOfAnotherUser: another user's homes are apart from those of the same names, listed apart, and renewed like them.
func TestHomesOfAnotherUser(t *testing.T) {
	t.Parallel()
	store := agenthome.Store(filepath.Join(t.TempDir(), "homes"))
	for _, of := range []agenthome.Store{store, store.Of(0), store.Of(1000), store.Of(1000).Of(7)} {
		home, err := of.Open("a")
		testkit.Must(t, err)
		testkit.Must(t, home.Prepare(map[string]string{".gitconfig": string(of)}))
		testkit.Must(t, os.WriteFile(filepath.Join(home.Path, ".bashrc"), []byte("evil"), 0o600))
		testkit.Must(t, store.Renew(home.Path, ""))
		text, err := os.ReadFile(filepath.Join(home.Path, ".gitconfig"))
		_, left := os.Lstat(filepath.Join(home.Path, ".bashrc"))
		if renewed := err == nil && string(text) == string(of) && errors.Is(left, fs.ErrNotExist); renewed != (of != store.Of(1000).Of(7)) {
			t.Errorf("%s: renewed is %t: %q, %v, %v", of, renewed, text, err, left)
		}
		testkit.Must(t, home.Close())
	}
	names, err := store.List()
	testkit.Must(t, err)
	users, err := store.Users()
	testkit.Must(t, err)
	if !slices.Equal(names, []string{"a"}) || !slices.Equal(users, []int{0, 1000}) {
		t.Errorf("got %q, %v", names, users)
	}
	testkit.Must(t, store.Of(1000).Remove("a"))
	if _, err := os.Stat(store.Path("a")); err != nil {
		t.Errorf("the home of the same name is gone: %v", err)
	}
	if users, err := agenthome.Store(t.TempDir()).Users(); err != nil || users != nil {
		t.Errorf("no users are %v, %v", users, err)
	}
}

// TestSizeFollowsNothing: a link, also one in place of a directory, leads a look nowhere, and deep directories end it.
func TestSizeFollowsNothing(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	testkit.Must(t, errors.Join(
		os.WriteFile(filepath.Join(outside, "big"), make([]byte, 1<<20), 0o600), os.Symlink(outside, filepath.Join(dir, "way")),
		os.WriteFile(filepath.Join(dir, "own"), make([]byte, 100<<10), 0o600), os.Link(filepath.Join(dir, "own"), filepath.Join(dir, "again")),
		os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", 300)), 0o700),
	))
	if got := agenthome.Size(dir, nil); got < 100<<10 || got > 100<<10+301*8<<10 {
		t.Errorf("it takes %d bytes", got)
	}
}
