package steps_test

import (
	"fmt"
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

// repository is a tree that is one of git.
type repository struct {
	*tree
	path string
}

func newRepository(t *testing.T, format string) *repository {
	t.Helper()
	path, err := exec.LookPath("git")
	if err != nil {
		t.Skip(err)
	}
	r := &repository{newTree(t, steps.Options{}), path}
	r.git("init", "-q", "-b", "main", "--object-format="+format)
	for i := range 5 {
		r.write(fmt.Sprintf("d%d/f", i%3), fmt.Sprintf("%d\n", i))
		r.write("g", strings.Repeat("line\n", i))
		r.commit(fmt.Sprint("commit ", i))
	}
	r.git("branch", "side", "HEAD~2")
	r.git("tag", "-m", "one", "v1", "HEAD~1")
	r.write("g", "stashed\n")
	r.git("stash", "push", "-q")
	return r
}

// git runs git, which may fail where a session is random.
func (r *repository) git(args ...string) string {
	r.Helper()
	cmd := exec.Command(r.path, args...)
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=a",
		"GIT_COMMITTER_EMAIL=a@x", "GIT_CEILING_DIRECTORIES="+filepath.Dir(r.root))
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%s%v", out, err)
	}
	return string(out)
}

func (r *repository) commit(message string) {
	r.Helper()
	r.git("add", "-A")
	r.git("commit", "-q", "--allow-empty", "-m", message)
}

// seen returns what a user sees of a repository.
func (r *repository) seen() map[string]string {
	r.Helper()
	all := make(map[string]string)
	for _, line := range []string{"for-each-ref", "symbolic-ref HEAD", "stash list --format=%H", "status --porcelain", "ls-files -s", "log --all --format=%H", "config --list --local", "reflog --format=%H"} {
		all[line] = r.git(strings.Fields(line)...)
	}
	return all
}

// sound fails the test if git finds a fault.
func (r *repository) sound(what string) {
	r.Helper()
	if out := r.git("fsck", "--full", "--no-dangling"); out != "" && !strings.HasPrefix(out, "notice") {
		r.Fatalf("%s: git fsck: %s", what, out)
	}
}

// destructive are command lines that people have lost work to.
var destructive = []string{
	"rm -rf .git",
	"git reset -q --hard HEAD~3",
	"git branch -q -f side HEAD && git branch -q -D side",
	"git stash drop -q",
	"git stash clear && git reflog expire --expire=now --all && git gc -q --prune=now",
	"git checkout -q --orphan empty && git rm -rfq .",
	"git clean -fdxq && git checkout -q -- .",
	"git commit -q --amend -m changed && git reflog expire --expire=now --all && git prune",
	"git rebase -q --autostash --onto side HEAD~2",
	"git pack-refs --all && git update-ref -d refs/heads/side",
	"git rm -q --cached g",
	"git tag -d v1 && git tag v2",
	"git checkout -q -f side && rm -r d0",
	"find . -mindepth 1 -delete",
	"rm .git/index",
	"mv .git x",
}

// TestGit undoes what commands of git and others have destroyed.
func TestGit(t *testing.T) {
	t.Parallel()
	for i, line := range destructive {
		for _, format := range []string{"sha1", "sha256"} {
			t.Run(fmt.Sprint(i, format), func(t *testing.T) {
				t.Parallel()
				r := newRepository(t, format)
				r.write("g", "not committed\n")
				r.write("new", "not added\n")
				r.write("staged", "added\n")
				r.git("add", "staged")
				r.cut(steps.Label{Kind: steps.Outside})
				before, files := r.seen(), r.copied()
				step := r.step(func() { r.shell(line) })
				done := r.undo(steps.UndoOptions{}, step)
				if len(done.Conflicts) > 0 {
					t.Fatalf("%s: %v", line, done.Conflicts)
				}
				if diff := cmp.Diff(before, r.seen()); diff != "" {
					t.Errorf("%s (-before +after)\n%s", line, diff)
				}
				worktree(files)
				after := r.copied()
				worktree(after)
				if diff := cmp.Diff(files, after); diff != "" {
					t.Errorf("%s (-before +after)\n%s", line, diff)
				}
				r.sound(line)
			})
		}
	}
}

// worktree takes the .git directory out of a copy.
func worktree(all map[string]entry) {
	for path := range all {
		if path == ".git" || strings.HasPrefix(path, ".git/") {
			delete(all, path)
		}
	}
}

func (r *repository) shell(line string) {
	r.Helper()
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=b", "GIT_AUTHOR_EMAIL=b@x", "GIT_COMMITTER_NAME=b", "GIT_COMMITTER_EMAIL=b@x")
	if out, err := cmd.CombinedOutput(); err != nil {
		r.Logf("%s: %v\n%s", line, err, out)
	}
}

// TestGitMeanwhile: what a person has staged and committed after a step stays, and holds back no file.
func TestGitMeanwhile(t *testing.T) {
	t.Parallel()
	r := newRepository(t, "sha1")
	step := r.step(func() { r.shell("rm -r d0 && git rm -rq d1 && echo agent >by-agent && git add by-agent") })
	r.write("by-person", "x\n")
	r.git("add", "by-person")
	r.git("status")
	done := r.undo(steps.UndoOptions{}, step)
	if len(done.Conflicts) > 0 {
		t.Fatalf("%v", done.Conflicts)
	}
	if got := r.git("status", "--porcelain"); got != "A  by-person\n" {
		t.Errorf("status: %q", got)
	}
	r.sound("after a person has staged")

	step = r.step(func() { r.shell("git reset -q --hard HEAD~2") })
	r.write("later", "x\n")
	r.git("add", "later")
	r.git("commit", "-q", "-m", "by a person")
	head := r.git("rev-parse", "HEAD")
	done = r.undo(steps.UndoOptions{}, step)
	if len(done.Conflicts) == 0 || done.Step == nil {
		t.Fatalf("%+v", done)
	}
	for _, c := range done.Conflicts {
		if !c.Aside {
			t.Errorf("%+v holds others back", c)
		}
	}
	if got := r.git("rev-parse", "HEAD"); got != head {
		t.Errorf("the person's commit is gone: %s", got)
	}
	if got := testkit.ReadFile(t, filepath.Join(r.root, "d1/f")); got != "4\n" {
		t.Errorf("the file of a commit that was reset: %q", got)
	}
	r.sound("after a person has committed")
}

// TestGitSessions runs random commands of an agent and of a person, with undos in between: git finds no fault.
func TestGitSessions(t *testing.T) {
	t.Parallel()
	lines := []string{
		"git add -A", "git commit -q -m x", "git commit -q -a -m y", "git checkout -q side", "git checkout -q main", "git merge -q side -m m", "git reset -q --hard HEAD~1", "git stash -q",
		"git stash pop -q", "git rm -q --cached g", "git gc -q", "git branch -f side", "git tag -f t", "git rebase -q side", "git merge --abort", "git rebase --abort", "git checkout -q -- .",
		"echo $RANDOM >g", "rm -rf d1", "mkdir -p e && echo >e/f", "rm -f .git/refs/heads/side", "git pack-refs --all", "git update-index --index-version 4", "git worktree add -q w side",
	}
	for seed := range testkit.Rounds(4, 1, 300) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := newRepository(t, "sha1")
			random := rand.New(rand.NewPCG(uint64(seed), 11))
			act := func() {
				for range random.IntN(4) {
					r.shell(lines[random.IntN(len(lines))])
				}
			}
			var all []*steps.Step
			for range 10 {
				act()
				if step := r.step(act); step != nil {
					all = append(all, step)
				}
				act()
				if len(all) > 0 && random.IntN(2) == 0 {
					before := r.git("fsck", "--full", "--no-dangling")
					done := r.undo(steps.UndoOptions{Partial: random.IntN(2) == 0}, all[random.IntN(len(all))])
					if after := r.git("fsck", "--full", "--no-dangling"); after != before && after != "" && !strings.HasPrefix(after, "notice") { // as that a branch of HEAD was removed since
						t.Fatalf("git fsck: %s\nconflicts: %v", after, done.Conflicts)
					}
				}
			}
		})
	}
}
