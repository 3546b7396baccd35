package steps_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/steps"
)

// copied is a tree with a copy of it.
type copied struct {
	*tree
	copy *tree
}

func newCopied(t *testing.T, files map[string]string) *copied {
	t.Helper()
	key := make([]byte, 32)
	c := &copied{tree: newTree(t, steps.Options{Key: key, Secret: func(path string) bool { return path == ".env" }, MaxFile: 1 << 20})}
	for name, text := range files {
		c.write(name, text)
	}
	c.cut(steps.Label{Kind: steps.Outside})
	options := c.options
	options.Origin = func(context.Context) (*steps.Store, func(), error) { return c.store, func() {}, nil }
	c.copy = &tree{T: t, dir: filepath.Join(t.TempDir(), "store"), root: t.TempDir(), options: options}
	testkit.Must(t, c.store.Copy(t.Context(), c.copy.root, c.copy.dir))
	if step := c.copy.open(); step != nil {
		t.Fatalf("a copy is changed before anything happened: %+v", step)
	}
	t.Cleanup(func() { testkit.Must(t, c.copy.store.Close()) })
	return c
}

func (c *copied) apply(paths []string, options steps.UndoOptions) *steps.Undone {
	c.Helper()
	c.copy.cut(steps.Label{Kind: steps.Call, Agent: "a"})
	options.Before = steps.Label{Kind: steps.Outside}
	return testkit.Value(c.store.Apply(c.Context(), c.copy.store, paths, options))(c.T)
}

func (t *tree) has(name, text string) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(t.root, name))
	if text == "" && errors.Is(err, os.ErrNotExist) {
		return
	}
	if err != nil || string(got) != text {
		t.Errorf("%s has %q, %v; want %q", name, got, err, text)
	}
}

func (t *tree) remove(name string) {
	t.Helper()
	testkit.Must(t, os.RemoveAll(filepath.Join(t.root, name)))
}

// TestCopy: a copy is the tree: contents, modes, links and times, also of what is not stored or is sealed.
func TestCopy(t *testing.T) {
	t.Parallel()
	c := newCopied(t, map[string]string{"a": "1", "d/b": "2", ".env": "secret", "large": strings.Repeat("x", 2<<20)})
	for _, name := range []string{"a", "d/b", ".env", "large"} {
		was, is := testkit.Value(os.Lstat(filepath.Join(c.root, name)))(t), testkit.Value(os.Lstat(filepath.Join(c.copy.root, name)))(t)
		if was.Mode() != is.Mode() || !was.ModTime().Equal(is.ModTime()) || was.Size() != is.Size() {
			t.Errorf("%s is %v, its copy %v", name, was, is)
		}
	}
	c.copy.has(".env", "secret")
	if c.copy.again() != nil {
		t.Error("a copy that is opened again is changed")
	}
}

// TestApply: each path is taken over by itself, three-way, and the step that it becomes is undone like any other.
func TestApply(t *testing.T) {
	t.Parallel()
	lines := "1\n2\n3\n4\n5\n6\n7\n"
	c := newCopied(t, map[string]string{"same": "1", "merge": lines, "gone": "1", "removed": "1", "mine": "1", "dir/x": "1", ".env": "a"})
	c.copy.write("same", "2")
	c.copy.write("merge", strings.Replace(lines, "1", "one", 1))
	c.copy.remove("gone")
	c.copy.write("new/dir/file", "n")
	c.copy.write(".env", "b")
	testkit.Must(t, os.Symlink("/etc/passwd", filepath.Join(c.copy.root, "link")))
	c.write("merge", strings.Replace(lines, "7", "seven", 1))
	c.write("mine", "changed by its user")
	c.remove("removed")
	out := c.apply(nil, steps.UndoOptions{DryRun: true})
	if out.Step != nil || len(out.Changes) != 8 || len(out.Conflicts) > 0 {
		t.Fatalf("the plan is %+v", out)
	}
	c.has("same", "1")
	out = c.apply(nil, steps.UndoOptions{})
	if out.Step == nil || out.Step.Kind != steps.Apply {
		t.Fatalf("applied %+v", out)
	}
	c.has("same", "2")
	c.has("merge", "one\n2\n3\n4\n5\n6\nseven\n")
	c.has("gone", "")
	c.has("removed", "")
	c.has("mine", "changed by its user")
	c.has("new/dir/file", "n")
	c.has(".env", "b")
	if to := testkit.Value(os.Readlink(filepath.Join(c.root, "link")))(t); to != "/etc/passwd" {
		t.Errorf("the link leads to %s", to)
	}
	if left := testkit.Value(c.copy.store.Unapplied(t.Context(), nil))(t); left != nil {
		t.Errorf("not applied: %+v", left)
	}
	c.undo(steps.UndoOptions{}, out.Step)
	c.has("same", "1")
	c.has("merge", "1\n2\n3\n4\n5\n6\nseven\n")
	c.has("gone", "1")
	c.has(".env", "a")
}

// TestApplyPaths: what was applied is what the copy is compared with from then on, also by a store that is opened again.
func TestApplyPaths(t *testing.T) {
	t.Parallel()
	c := newCopied(t, map[string]string{"a": "1\n", "dir/b": "1\n", "dirt": "1\n"})
	c.copy.write("a", "2\n")
	c.copy.write("dir/b", "2\n")
	c.copy.write("dirt", "2\n")
	c.apply([]string{"dir"}, steps.UndoOptions{})
	c.has("dir/b", "2\n")
	c.has("dirt", "1\n")
	c.copy.again()
	c.copy.write("dir/b", "2, and more\n") // the same line, which is no conflict with what was applied
	if out := c.apply(nil, steps.UndoOptions{}); len(out.Conflicts) > 0 || len(out.Changes) != 3 {
		t.Errorf("applied %+v", out)
	}
	c.has("dir/b", "2, and more\n")
	c.has("a", "2\n")
	for _, path := range []string{"no", "dir", "../x", "a/"} {
		_, err := c.store.Apply(t.Context(), c.copy.store, []string{path}, steps.UndoOptions{Before: steps.Label{Kind: steps.Outside}})
		if !errors.Is(err, steps.ErrNoChange) {
			t.Errorf("apply %s: %v", path, err)
		}
	}
}

// TestApplyConflict: a conflict holds everything back, unless the rest is asked for; that is then applied, and the conflict stays.
func TestApplyConflict(t *testing.T) {
	t.Parallel()
	c := newCopied(t, map[string]string{"a": "1\n", "b": "1\n", "sub/x": "1", "large": strings.Repeat("x", 2<<20)})
	c.copy.write("a", "2\n")
	c.copy.write("b", "2\n")
	c.copy.write("new", "2")
	c.copy.write("large", "2")
	c.copy.remove("sub")
	c.write("a", "3\n")
	c.write("new", "3")
	c.write("sub/y", "of its user")
	out := c.apply(nil, steps.UndoOptions{})
	var paths []string
	for _, conflict := range out.Conflicts {
		paths = append(paths, conflict.Path)
	}
	if want := []string{"a", "large", "new"}; !slices.Equal(paths, want) || out.Step != nil {
		t.Fatalf("conflicts %+v, want %v", out.Conflicts, want)
	}
	c.has("b", "1\n")
	c.apply(nil, steps.UndoOptions{Partial: true})
	c.has("a", "3\n")
	c.has("b", "2\n")
	c.has("new", "3")
	c.has("sub/x", "")
	c.has("sub/y", "of its user")
	var left []string
	for _, change := range testkit.Value(c.copy.store.Unapplied(t.Context(), nil))(t) {
		left = append(left, change.Path)
	}
	if !slices.Equal(left, paths) {
		t.Errorf("left are %v", left)
	}
}

// TestApplyForgotten: what the tree's store has forgotten since is a conflict only where it is needed.
func TestApplyForgotten(t *testing.T) {
	t.Parallel()
	c := newCopied(t, map[string]string{"both": "1\n2\n3\n4\n", "one": "1"})
	c.write("both", "one\n2\n3\n4\n")
	for range 2 { // the last step is never forgotten
		c.cut(steps.Label{Kind: steps.Outside})
		c.write("other", "x")
	}
	c.cut(steps.Label{Kind: steps.Outside})
	testkit.Must(t, c.store.Collect(t.Context(), testkit.Value(c.store.Step(t.Context(), 2))(t).Ended.AddDate(1, 0, 0), 0))
	c.copy.write("both", "1\n2\n3\nfour\n")
	c.copy.write("one", "2")
	out := c.apply(nil, steps.UndoOptions{Partial: true})
	if len(out.Conflicts) != 1 || out.Conflicts[0].Path != "both" || !out.Conflicts[0].Missing {
		t.Errorf("conflicts are %+v", out.Conflicts)
	}
	c.has("one", "2")
}

// TestApplyGit: a repository in the copy works, and its commits are taken over; hooks, settings and a .git that leads elsewhere are not.
func TestApplyGit(t *testing.T) {
	t.Parallel()
	path, err := exec.LookPath("git")
	if err != nil {
		t.Skip(err)
	}
	c := newCopied(t, nil)
	r := &repository{c.tree, path}
	r.git("init", "-q", "-b", "main")
	c.write("a", "1\n")
	c.write("b", "1\n")
	r.git("add", ".")
	r.git("commit", "-qm", "one")
	c.cut(steps.Label{Kind: steps.Outside})
	testkit.Must(t, errors.Join(c.copy.store.Close(), os.RemoveAll(c.copy.dir), c.store.Copy(t.Context(), c.copy.root, c.copy.dir)))
	c.copy.open()
	in := &repository{c.copy, path}
	if status := in.git("status", "--porcelain"); status != "" {
		t.Errorf("status of the copy: %s", status)
	}
	c.copy.write("a", "2\n")
	in.git("commit", "-qam", "two")
	in.git("branch", "other")
	c.copy.write("c", "staged\n")
	in.git("add", "c")
	in.git("config", "core.fsmonitor", "./evil")
	c.copy.write(".git/hooks/post-checkout", "#!/bin/sh\n")
	c.copy.write("sub/.git", "gitdir: ../evil")
	c.copy.write("sub/.GIT/hooks/x", "evil")
	c.copy.write("made/.git/config", "[core]\n")
	c.copy.write("made/.git/HEAD", "ref: refs/heads/main\n")
	c.write("b", "changed by its user\n")
	r.git("add", "b")
	out := c.apply(nil, steps.UndoOptions{})
	var aside []string
	for _, conflict := range out.Conflicts {
		if !conflict.Aside {
			t.Errorf("conflict %+v", conflict)
		}
		aside = append(aside, conflict.Path)
	}
	slices.Sort(aside)
	if want := []string{".git/config", ".git/hooks", "made/.git/config", "sub/.GIT/hooks", "sub/.git"}; !slices.Equal(aside, want) {
		t.Errorf("left aside are %v, want %v", aside, want)
	}
	if log := r.git("log", "--format=%s", "other"); log != "two\none\n" {
		t.Errorf("log is %q", log)
	}
	if status := r.git("status", "--porcelain", "a", "b", "c"); status != "M  b\nA  c\n" {
		t.Errorf("status is %q", status)
	}
	r.git("fsck", "--strict")
	for _, name := range []string{".git/hooks/post-checkout", "sub/.git", "sub/.GIT/hooks/x", "made/.git/config"} {
		c.has(name, "")
	}
	c.has("made/.git/HEAD", "ref: refs/heads/main\n")
	if text := string(testkit.Value(os.ReadFile(filepath.Join(c.root, ".git/config")))(t)); strings.Contains(text, "evil") {
		t.Errorf("the configuration is %s", text)
	}
}
