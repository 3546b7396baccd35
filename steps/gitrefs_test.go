package steps_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/steps"
)

// TestGitRefs: a reference is taken back by its value, wherever git keeps it now. What another made of it since stays.
func TestGitRefs(t *testing.T) {
	t.Parallel()
	const heads = "for-each-ref --format=%(refname)=%(objectname)"
	for name, tt := range map[string]struct {
		first, agent, person string // command lines
		lost                 string // references that the undo takes back to what they were before the agent
		conflict             string // the reference that is not taken back
	}{
		"packed since":                {agent: "git commit -q --allow-empty -m x", person: "git pack-refs --all", lost: "refs/heads/main"},
		"made, and packed since":      {agent: "git branch new", person: "git pack-refs --all", lost: "refs/heads/new"},
		"removed from the packed":     {first: "git pack-refs --all", agent: "git branch -q -D side", person: "git branch other", lost: "refs/heads/side"},
		"removed, and packed since":   {first: "git pack-refs --all", agent: "git branch -q -D side", person: "git branch other && git pack-refs --all", lost: "refs/heads/side"},
		"packed, and moved since":     {agent: "git pack-refs --all", person: "git commit -q --allow-empty -m x && git pack-refs --all"},
		"packed, and removed since":   {agent: "git pack-refs --all", person: "git branch -q -D side"},
		"changed and packed":          {agent: "git branch -f side HEAD && git pack-refs --all", person: "git branch other", lost: "refs/heads/side"},
		"changed, and changed since":  {agent: "git branch -f side HEAD && git pack-refs --all", person: "git branch -f side HEAD~1 && git pack-refs --all", conflict: "refs/heads/side"},
		"removed, and made since":     {agent: "git branch -q -D side", person: "git branch side HEAD~1", conflict: "refs/heads/side"},
		"changed, and removed since":  {agent: "git branch -f side HEAD", person: "git branch -q -D side", conflict: "refs/heads/side"},
		"all removed, and one since":  {first: "git pack-refs --all", agent: "rm -rf .git/packed-refs .git/refs/heads/*", person: "git -c user.name=p branch other v1 2>/dev/null || true", lost: "refs/heads/main refs/heads/side refs/stash refs/tags/v1"},
		"packed and kept, then moved": {agent: "git pack-refs --all --no-prune", person: "git branch -f side HEAD"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t, "sha1")
			r.shell(tt.first)
			r.cut(steps.Label{Kind: steps.Outside})
			values := func() map[string]string {
				all := make(map[string]string)
				for _, line := range strings.Fields(r.git(strings.Fields(heads)...)) {
					name, id, _ := strings.Cut(line, "=")
					all[name] = id
				}
				return all
			}
			before := values()
			step := r.step(func() { r.shell(tt.agent) })
			r.shell(tt.person)
			want := values()
			for _, ref := range strings.Fields(tt.lost) {
				if delete(want, ref); before[ref] != "" {
					want[ref] = before[ref]
				}
			}
			done := r.undo(steps.UndoOptions{Partial: true}, step)
			conflicts := ""
			for _, c := range done.Conflicts {
				if path := strings.TrimPrefix(c.Path, ".git/"); strings.HasPrefix(path, "refs/") || path == "packed-refs" {
					conflicts += path
				}
			}
			if conflicts != tt.conflict {
				t.Errorf("conflicts: %v", done.Conflicts)
			}
			if diff := cmp.Diff(want, values()); diff != "" {
				t.Error(diff)
			}
			r.sound("after the undo")
		})
	}
}

// TestGitStages: of a file in the index, either the merged stage is there or those that are not.
func TestGitStages(t *testing.T) {
	t.Parallel()
	r := newRepository(t, "sha1")
	r.shell("git checkout -q side && echo other >g && git commit -q -am other && git checkout -q main && echo mine >g && git commit -q -am mine")
	r.cut(steps.Label{Kind: steps.Outside})
	step := r.step(func() { r.shell("git merge -q side -m m; true") })
	r.shell("echo both >g; git add g")
	r.undo(steps.UndoOptions{Partial: true}, step)
	r.sound("after the undo of a merge whose conflict a person has solved")
	if got := r.git("ls-files", "-s", "g"); strings.Count(got, "\n") != 1 {
		t.Errorf("the index has %s", got)
	}
	step = r.step(func() { r.shell("git reset -q --hard; git rm -q -r d0; echo f >d0; git add d0") })
	r.shell("rm d0; mkdir d0; echo x >d0/x; git add -A")
	r.undo(steps.UndoOptions{Partial: true}, step)
	r.sound("after the undo of a file in the place of a directory")
	step = r.step(func() { r.shell("git rm -q -r --cached d1; git rm -q --cached -r d0") })
	r.shell("git commit -q -m y; rm -rf d1; echo f >d1; git add d1")
	if done := r.undo(steps.UndoOptions{Partial: true}, step); len(done.Conflicts) == 0 {
		t.Error("a directory comes back in the place of a file")
	}
	r.sound("after the undo of a directory in the place of a file")
}
