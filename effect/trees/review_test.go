package trees_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/promptware-os/pwos/effect/trees"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/step"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// review begins or goes on with a review of the directory work, and starts a program in the copy, which it returns.
func (w *world) review(pid int64, agent string) (copied string) {
	w.Helper()
	project, copied, err := w.Review(agent, w.path(""), w.home)
	testkit.Must(w.T, err)
	if project != w.path("") {
		w.Fatalf("the review is of %s", project)
	}
	if why := w.Enter(trees.Newcomer{PID: pid, Agent: agent, Dirs: []string{copied}, Home: w.home}); why != nil {
		w.Fatalf("not covered: %v", why)
	}
	return copied
}

func (w *world) apply(in *schema.ReviewApplyInput) (schema.ReviewOutput, error) {
	w.Helper()
	return w.Apply(w.Context(), &kernel.Job{Seq: 9}, in)
}

func (w *world) diff(agent string) string {
	w.Helper()
	text, _, err := w.Diff(w.Context(), &step.Diff{Review: agent})
	testkit.Must(w.T, err)
	return string(text)
}

// TestReview: a review outlives its program and the kernel, also one that is killed while it makes the copy; its steps are those of the
// agent, what is applied is a step in the directory, and the copy is removed when it is applied as a whole and nobody works in it.
func TestReview(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "1\n")
	w.write("sub/b", "1\n")
	left := filepath.Join(w.state, "copies", "left", "tree")
	testkit.Must(t, os.MkdirAll(left, 0o755))
	copied := w.review(1, "a")
	testkit.Must(t, os.WriteFile(filepath.Join(copied, "a"), []byte("2\n"), 0o644))
	w.Leave(1)
	w.Close()
	w.open()
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a copy that was not finished is still there: %v", err)
	}
	if list := w.Reviews(); len(list) != 1 || list[0].Agent != "a" || list[0].Tree != w.path("") || list[0].Copy != copied || list[0].Runs {
		t.Fatalf("reviews are %+v", list)
	}
	if again := w.review(2, "a"); again != copied || !w.Reviews()[0].Runs {
		t.Errorf("the next run works in %s, not in %s", again, copied)
	}
	testkit.Must(t, os.WriteFile(filepath.Join(copied, "sub/b"), []byte("2\n"), 0o644))
	if got := w.diff("a"); !strings.Contains(got, "+++ b/a") || !strings.Contains(got, "+++ b/sub/b") {
		t.Errorf("the diff is %s", got)
	}
	if w.frozen.Load() != 0 {
		t.Error("the program is still stopped")
	}
	out, err := w.apply(&schema.ReviewApplyInput{Agent: "a"})
	testkit.Must(t, err)
	if out.Ended || out.Step != 3 || out.Files.Changed != 2 || w.read("a") != "2\n" || w.read("sub/b") != "2\n" {
		t.Errorf("applied %+v", out)
	}
	w.all()
	text, _, err := w.Diff(t.Context(), &step.Diff{Records: w.steps.View().Of("a"), Path: w.path("a")})
	if got := string(text); err != nil || strings.Count(got, "+++ b/a\n") != 2 || strings.Contains(got, "sub/b") {
		t.Errorf("the steps in the copy and the one in the directory changed a, and are shown as %s: %v", got, err)
	}
	if _, err := w.Discard(t.Context(), &kernel.Job{}, &schema.ReviewDiscardInput{Agent: "a"}); !errors.Is(err, fault.StepsConflict) {
		t.Errorf("discard while it runs: %v", err)
	}
	w.Leave(2)
	out, err = w.apply(&schema.ReviewApplyInput{Agent: "a"})
	testkit.Must(t, err)
	if !out.Ended || out.Step != 0 || len(w.Reviews()) != 0 {
		t.Errorf("applied %+v, and there are %+v", out, w.Reviews())
	}
	if _, err := os.Stat(copied); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the copy is still there: %v", err)
	}
	w.want("a:1 activity +0 ~1 -0", "a:2 activity +0 ~1 -0", "a:3 apply +0 ~2 -0")
	if _, err := w.undo("a", 3); err != nil || w.read("a") != "1\n" {
		t.Errorf("undo: %v, a is %q", err, w.read("a"))
	}
}

// TestReviewCollected: what a copy began with is kept as long as the copy, however old.
func TestReviewCollected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settings.Keep = -time.Hour
	w.write("a", "1\n2\n3\n")
	copied := w.review(1, "a")
	testkit.Must(t, os.WriteFile(filepath.Join(copied, "a"), []byte("one\n2\n3\n"), 0o644))
	w.Leave(1)
	w.Close()
	for _, entry := range testkit.Value(os.ReadDir(filepath.Join(w.state, "steps")))(t) {
		old := time.Now().AddDate(-1, 0, 0)
		if entry.IsDir() {
			testkit.Must(t, os.Chtimes(filepath.Join(w.state, "steps", entry.Name(), "used"), old, old))
		}
	}
	w.open()
	trees.Collect(w.Trees, time.Now().AddDate(0, -1, 0))
	w.write("a", "1\n2\nthree\n")
	if _, err := w.apply(&schema.ReviewApplyInput{Agent: "a"}); err != nil || w.read("a") != "one\n2\nthree\n" {
		t.Errorf("apply: %v, a is %q", err, w.read("a"))
	}
}

// TestReviewRefused: what cannot be reviewed is refused before anything is made.
func TestReviewRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "1")
	testkit.Must(t, os.MkdirAll(w.path("linked"), 0o755))
	testkit.Must(t, os.WriteFile(w.path("linked/.git"), []byte("gitdir: /elsewhere"), 0o644))
	outside := t.TempDir()
	w.review(1, "a")
	for name, c := range map[string]struct{ agent, dir, want string }{
		"another directory":     {"a", filepath.Join(w.home, "other"), "works on a copy of " + w.path("") + " already"},
		"a linked worktree":     {"b", w.path("linked"), "a linked worktree or a submodule"},
		"outside":               {"b", outside, "neither in the home directory nor in a repository"},
		"none, and none exists": {"b", "", "it was applied or discarded"},
	} {
		if _, _, err := w.Review(c.agent, c.dir, w.home); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.Leave(1)
	w.Close()
	w.settings.MaxFiles = 1
	w.write("b", "1")
	w.open()
	if _, _, err := w.Review("b", w.path(""), w.home); err == nil || !strings.Contains(err.Error(), "more than 1 files") {
		t.Errorf("a tree that is too large: %v", err)
	}
	w.Close()
	w.settings.Off = true
	w.open()
	if _, _, err := w.Review("b", w.path(""), w.home); err == nil || !strings.Contains(err.Error(), "steps are off") {
		t.Errorf("without steps: %v", err)
	}
	if entries := testkit.Value(os.ReadDir(filepath.Join(w.state, "copies")))(t); len(entries) != 1 {
		t.Errorf("there are %d copies", len(entries))
	}
}

// TestReviewAtOnce: agents of one name that start at once have one copy, and applies at once write the changes once.
func TestReviewAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "1")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, _, err := w.Review("a", w.path(""), w.home); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	copied := w.review(1, "a")
	testkit.Must(t, os.WriteFile(filepath.Join(copied, "new"), []byte("2"), 0o644))
	w.Leave(1)
	for range 4 {
		all.Go(func() {
			if _, err := w.apply(&schema.ReviewApplyInput{Agent: "a"}); err != nil && !errors.Is(err, fault.StepsNotFound) {
				t.Error(err)
			}
		})
		all.Go(func() {
			if _, _, err := w.Diff(t.Context(), &step.Diff{Review: "a"}); err != nil && !errors.Is(err, fault.StepsNotFound) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	w.want("a:1 activity +1 ~0 -0", "a:2 apply +1 ~0 -0")
}

// TestReviewHostile: links of the copy are taken over as such, what is no file is not, and nothing is written elsewhere; the plan that was
// shown is the one that is carried out.
func TestReviewHostile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	outside := filepath.Join(t.TempDir(), "outside")
	testkit.Must(t, os.WriteFile(outside, []byte("1"), 0o644))
	w.write("dir/a", "1")
	w.write("b", "1")
	copied := w.review(1, "a")
	testkit.Must(t, errors.Join(
		os.RemoveAll(filepath.Join(copied, "dir")), os.Symlink(filepath.Dir(outside), filepath.Join(copied, "dir")),
		os.Remove(filepath.Join(copied, "b")), os.Symlink(outside, filepath.Join(copied, "b")),
	))
	shown := testkit.Value(w.apply(&schema.ReviewApplyInput{Agent: "a", DryRun: new(true)}))(t)
	testkit.Must(t, os.WriteFile(filepath.Join(copied, "later"), []byte("1"), 0o644))
	if _, err := w.apply(&schema.ReviewApplyInput{Agent: "a", Expect: &shown.Plan}); !errors.Is(err, fault.StepsOtherPlan) {
		t.Errorf("another plan: %v", err)
	}
	for _, path := range []string{"/", w.home, filepath.Join(w.home, "work2"), outside} {
		if _, err := w.apply(&schema.ReviewApplyInput{Agent: "a", Paths: []string{path}}); !errors.Is(err, fault.WireInvalidInput) {
			t.Errorf("apply %s: %v", path, err)
		}
	}
	testkit.Value(w.apply(&schema.ReviewApplyInput{Agent: "a"}))(t)
	for name, want := range map[string]string{"dir": filepath.Dir(outside), "b": outside} {
		if got := testkit.Value(os.Readlink(w.path(name)))(t); got != want {
			t.Errorf("%s leads to %s", name, got)
		}
	}
	if text := testkit.Value(os.ReadFile(outside))(t); string(text) != "1" {
		t.Errorf("outside has %q", text)
	}
}
