package steps_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/steps"
)

// TestDiff: git makes of the tree before a step what it was after it, by what Diff writes.
func TestDiff(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip(err)
	}
	for seed := range testkit.Rounds(15, 4, 500) {
		s := &session{tree: newTree(t, steps.Options{}), rand: rand.New(rand.NewPCG(uint64(seed), 10))}
		lines := func() string {
			var b strings.Builder
			for range s.rand.IntN(40) {
				fmt.Fprintf(&b, "line %d\n", s.rand.IntN(30))
			}
			return strings.Repeat(b.String(), 1+s.rand.IntN(3)) + []string{"", "no end"}[s.rand.IntN(2)]
		}
		change := func() {
			for range 6 {
				path := s.name() + []string{"", " with space", "\ttab", "\"ä"}[s.rand.IntN(4)]
				_ = os.MkdirAll(filepath.Dir(path), 0o755)
				switch s.rand.IntN(6) {
				case 0:
					_ = os.Remove(path)
				case 1:
					_ = os.Rename(path, s.name())
				case 2:
					if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
						_ = os.Chmod(path, info.Mode()^0o111)
					}
				case 3:
					_ = os.Symlink("to "+path, path)
				default:
					_ = os.WriteFile(path, []byte(lines()), 0o644)
				}
			}
		}
		change()
		change()
		s.cut(steps.Label{Kind: steps.Outside})
		before := t.TempDir()
		testkit.Must(t, os.CopyFS(before, os.DirFS(s.root)))
		change()
		first := s.cut(steps.Label{Kind: steps.Call})
		change()
		second := s.cut(steps.Label{Kind: steps.Call})
		var list []*steps.Step
		for _, step := range []*steps.Step{first, second} {
			if step != nil {
				list = append(list, step)
			}
		}
		var diff bytes.Buffer
		testkit.Must(t, s.store.Diff(t.Context(), &diff, steps.Composed(list)))
		if diff.Len() > 0 {
			cmd := exec.Command(git, "apply", "--whitespace=nowarn", "-")
			cmd.Dir, cmd.Stdin = before, bytes.NewReader(diff.Bytes())
			cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(before))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("seed %d: git apply: %v\n%s\n%s", seed, err, out, diff.String())
			}
		}
		if got, want := files(t, before), files(t, s.root); !cmp.Equal(got, want) {
			t.Fatalf("seed %d (-want +got): %s\n%s", seed, cmp.Diff(want, got), diff.String())
		}
	}
}

// files returns what git keeps of a tree.
func files(t *testing.T, root string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	testkit.Must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if d.Type() == fs.ModeSymlink {
			target, err := os.Readlink(path)
			all[path[len(root):]] = "-> " + target
			return err
		}
		text, err := os.ReadFile(path)
		all[path[len(root):]] = fmt.Sprintf("%v %s", info.Mode()&0o100, text)
		return err
	}))
	return all
}

// TestDiffHides: of a secret file a diff says only that it changed, of a binary one that it is one.
func TestDiffHides(t *testing.T) {
	t.Parallel()
	tr := newTree(t, steps.Options{Key: []byte("k"), Secret: func(path string) bool { return path == ".env" }})
	step := tr.step(func() { tr.write(".env", "canary"); tr.write("b", "\x00\x01") })
	var diff bytes.Buffer
	testkit.Must(t, tr.store.Diff(t.Context(), &diff, step.Changes))
	const want = "diff --git a/.env b/.env\nnew file mode 100644\nSecret files /dev/null and b/.env differ\n" +
		"diff --git a/b b/b\nnew file mode 100644\nBinary files /dev/null and b/b differ\n"
	if got := diff.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := tr.store.Diff(t.Context(), broken{}, step.Changes); !errors.Is(err, errBroken) {
		t.Errorf("to a reader that is gone: %v", err)
	}
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }
