package rmtree_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/internal/rmtree"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestRemove: a tree is removed, whatever a program has made of it, and nothing else.
func TestRemove(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(t *testing.T, dir string){
		"nothing": func(*testing.T, string) {},
		"a file":  func(t *testing.T, dir string) { testkit.Must(t, os.WriteFile(dir, nil, 0)) },
		"a link":  func(t *testing.T, dir string) { testkit.Must(t, os.Symlink("../kept", dir)) },
		"empty":   func(t *testing.T, dir string) { testkit.Must(t, os.Mkdir(dir, 0)) },
		"all kinds": func(t *testing.T, dir string) {
			for _, below := range []string{"", "a", "a/b", "a/b/c", "a/b/c/d", "a/e", "f"} {
				at := filepath.Join(dir, below)
				testkit.Must(t, os.MkdirAll(at, 0o700))
				testkit.Must(t, os.WriteFile(filepath.Join(at, "file"), []byte("x"), 0o400))
				testkit.Must(t, os.Symlink(dir+"/../../kept", filepath.Join(at, "link")))
				testkit.Must(t, syscall.Mkfifo(filepath.Join(at, "fifo"), 0))
				testkit.Must(t, os.Mkdir(filepath.Join(at, "empty"), 0))
			}
			for _, below := range []string{"a/b/c/d", "a/b/c", "a/b", "a", "f", ""} {
				testkit.Must(t, os.Chmod(filepath.Join(dir, below), 0))
			}
		},
		"many": func(t *testing.T, dir string) {
			for i := range 2000 {
				testkit.Must(t, os.MkdirAll(fmt.Sprintf("%s/%d/%d", dir, i%3, i), 0o700))
				testkit.Must(t, os.WriteFile(fmt.Sprintf("%s/%d/file %d", dir, i%3, i), nil, 0o600))
			}
		},
		"long names": func(t *testing.T, dir string) { // a path holds 4,096 bytes
			root, err := os.OpenRoot(filepath.Dir(dir))
			testkit.Must(t, err)
			testkit.Must(t, root.MkdirAll("tree/"+strings.Repeat(strings.Repeat("n", 255)+"/", 70), 0o700))
			testkit.Must(t, root.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := t.TempDir()
			kept := filepath.Join(place, "kept")
			testkit.Must(t, os.Mkdir(kept, 0o700))
			testkit.Must(t, os.WriteFile(filepath.Join(kept, "file"), nil, 0o600))
			dir := filepath.Join(place, "state", "tree")
			testkit.Must(t, os.Mkdir(filepath.Dir(dir), 0o700))
			plant(t, dir)
			testkit.Must(t, rmtree.Dir(dir))
			if left, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
			if _, err := os.Stat(filepath.Join(kept, "file")); err != nil {
				t.Error(err)
			}
		})
	}
	testkit.Must(t, rmtree.Dir(filepath.Join(t.TempDir(), "none", "none")))
}

// TestFewDescriptors: a tree is removed that is deeper than directories can be open.
func TestFewDescriptors(t *testing.T) {
	t.Parallel()
	const variable = "PWOS_TEST_TREE"
	if dir := os.Getenv(variable); dir != "" { // with few descriptors
		testkit.Must(t, rmtree.Dir(dir))
		return
	}
	dir := filepath.Join(t.TempDir(), "tree")
	at := dir
	testkit.Must(t, os.Mkdir(at, 0o700))
	for range 1000 {
		at += "/d"
		testkit.Must(t, os.Mkdir(at, 0o700))
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `ulimit -n 100 && exec "$0" -test.run='^TestFewDescriptors$'`, testkit.Value(os.Executable())(t))
	cmd.Env = append(os.Environ(), variable+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("the tree is left: %v", err)
	}
}
