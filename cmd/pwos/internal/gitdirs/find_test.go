package gitdirs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/promptware-os/pwos/cmd/pwos/internal/gitdirs"
	"github.com/promptware-os/pwos/internal/testkit"
)

// sh runs a script in a directory.
func sh(t *testing.T, dir, script string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

const setting = `git init -q -b main other; echo x >other/f; git -C other add f; git -C other commit -qm x; mkdir .ssh p; `

// TestLeadsElsewhere: a file .git makes a directory outside of the project writable only if that leads back.
func TestLeadsElsewhere(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"keys":                        `echo "gitdir: $PWD/.ssh" >p/.git`,
		"another repository":          `echo "gitdir: $PWD/other/.git" >p/.git`,
		"the same, with its file":     `echo "gitdir: ../other/.git" >p/.git; cp -p other/f p/f`,
		"a work tree of another":      `git -C other worktree add -q ../w; rm -r p; cp -r w p`,
		"a common directory":          `git -C other worktree add -q ../w; mv w/.git p/.git; echo $PWD/.ssh >other/.git/worktrees/w/commondir; echo $PWD/p/.git >other/.git/worktrees/w/gitdir`,
		"a link on the way":           `git -C other worktree add -q ../w; ln -s other link; echo "gitdir: $PWD/link/.git/worktrees/w" >p/.git; echo $PWD/p/.git >other/.git/worktrees/w/gitdir`,
		"a repository of another":     `git init -q --separate-git-dir=sep q; git -C q config core.worktree $PWD/q; echo "gitdir: $PWD/sep" >p/.git`,
		"an empty one":                `git init -q --separate-git-dir=$PWD/sep q; echo "gitdir: $PWD/sep" >p/.git`,
		"nothing":                     `echo "gitdir: $PWD/none" >p/.git`,
		"no path":                     `echo "gitdir: " >p/.git`,
		"much":                        `head -c 100000 /dev/zero >p/.git`,
		"a file of an agent's making": `git -C other worktree add -q ../w; rm -r p; mv w p; echo $PWD/p/.git >other/.git/worktrees/w/gitdir; touch made`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			sh(t, dir, setting+script)
			_, err := os.Stat(filepath.Join(dir, "made"))
			found, refused := gitdirs.Find([]string{filepath.Join(dir, "p")}, func(string) bool { return err == nil })
			if len(found) != 0 || len(refused) != 1 || refused[0].Why == "" {
				t.Errorf("found %v, refused %v", found, refused)
			}
		})
	}
}

// TestLeadsBack: what belongs to the project is found.
func TestLeadsBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, git, common string }{
		"a linked work tree":    {`rm -r p; git -C other worktree add -q ../p`, "other/.git/worktrees/p", "other/.git"},
		"a separate directory":  {`git init -q --separate-git-dir=$PWD/sep p; echo x >p/f; git -C p add f`, "sep", "sep"},
		"another, with setting": {`git init -q --separate-git-dir=$PWD/sep p; git -C p config core.worktree $PWD/p`, "sep", "sep"},
		"an ordinary one":       {`git init -q p`, "p/.git", "p/.git"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			sh(t, dir, setting+c.script)
			found, refused := gitdirs.Find([]string{filepath.Join(dir, "p")}, func(string) bool { return false })
			if len(found) != 1 || found[0].Git != filepath.Join(dir, c.git) || found[0].Common != filepath.Join(dir, c.common) {
				t.Errorf("found %v, refused %v", found, refused)
			}
		})
	}
}

// TestTakenOver: what is safe is taken over without a question, and nothing else.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]int{
		`remote add up https://example.com/x.git`:                       0,
		`remote add up ssh://git@example.com:22/x.git`:                  0,
		`remote add up git@example.com:x/y.git`:                         0,
		`config user.name n`:                                            0,
		`remote add up http://example.com/x.git`:                        2,
		`remote add up "ext::sh -c x"`:                                  2,
		`remote add up ssh://-oProxyCommand=x/y`:                        2,
		`remote add up -- -oProxyCommand=x:y`:                           2,
		`remote add up /srv/x.git`:                                      2,
		`remote add up file:///srv/x.git`:                               2,
		`remote add origin https://example.com/x.git`:                   2,
		`config --add remote.own.url https://example.com/x.git`:         1,
		`config remote.own.pushurl https://example.com/x.git`:           1,
		`config --add remote.own.fetch +refs/heads/*:refs/heads/*`:      1,
		`config branch.main.remote own`:                                 1,
		`config remote.pushDefault own`:                                 1,
		`config --remove-section remote.own`:                            2,
		`sparse-checkout set a`:                                         0,
		`config core.sparseCheckout /x`:                                 1,
		`config extensions.worktreeConfig false`:                        1,
		`config core.fsmonitor x`:                                       1,
		`config user.signingkey x`:                                      1,
		`config remote.https://example.com/x.url https://evil.example/`: 1,
		`config remote.up.url https://example.com/x`:                    1,
		`config branch.new.pushRemote own`:                              1,
		`remote add up https://u:p@example.com/x`:                       2,
		`remote add -t main up https://example.com/x`:                   2,
		`config alias.x "!y"`:                                           1,
		`config remote.up.url "https://example.com/x\n[core]"`:          1,
		`config branch.new.merge refs/heads/main`:                       1,
		`config branch.new.remote "https://evil.example/"`:              1,
		`config include.path /etc/passwd`:                               1,
		`config submodule.x.update "!y"`:                                1,
		`config url.https://evil.example/.insteadOf https://e.org/`:     1,
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			sh(t, dir, `git init -q -b main p; cd p; git commit -q --allow-empty -m x; git remote add own https://own.example/x.git`)
			store := gitdirs.Store(filepath.Join(dir, "store"))
			session, _, err := store.Begin(t.Context(), "a", []string{filepath.Join(dir, "p")})
			testkit.Must(t, err)
			testkit.Must(t, session.Started(1))
			real := filepath.Join(dir, "p", ".git", "config")
			at := session.Copies()[real]
			before := testkit.ReadFile(t, real)
			sh(t, dir, `export COPY=`+at+`; cp p/.git/config saved; cp $COPY p/.git/config; cd p; git `+script+`; cd ..; test -s $COPY && cmp -s $COPY saved && cp p/.git/config $COPY; cp saved p/.git/config`)
			o, err := store.End(t.Context(), session)
			testkit.Must(t, err)
			if len(o.Left) != want {
				t.Errorf("left %v, want %d; taken %q", o.Left, want, o.Taken)
			}
			after := testkit.ReadFile(t, real)
			if (want > 0) != (after == before) {
				t.Errorf("settings before %s, after %s", before, after)
			}
			for i := range o.Left {
				testkit.Must(t, store.Answer(t.Context(), &o.Left[i], true))
			}
			if left, err := store.Changes(); err != nil || len(left) > 0 {
				t.Errorf("left after they were taken: %v, %v", left, err)
			}
		})
	}
}

// TestAnswered: an answer is in effect for what was asked, and not for what has changed meanwhile.
func TestAnswered(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sh(t, dir, `git init -q -b main p; git -C p config a.b start; git -C p config a.gone start`)
	store := gitdirs.Store(filepath.Join(dir, "store"))
	session, _, err := store.Begin(t.Context(), "a", []string{filepath.Join(dir, "p")})
	testkit.Must(t, err)
	testkit.Must(t, session.Started(1))
	at := session.Copies()[filepath.Join(dir, "p", ".git", "config")]
	sh(t, dir, `git config --file `+at+` a.b agent; git config --file `+at+` --unset a.gone; git config --file `+at+` a.new agent; git -C p config a.b user`)
	o, err := store.End(t.Context(), session)
	testkit.Must(t, err)
	if len(o.Left) != 3 {
		t.Fatalf("left %v", o.Left)
	}
	both, gone, added := &o.Left[0], &o.Left[1], &o.Left[2]
	if !slices.Equal(both.Base, []string{"start"}) || !slices.Equal(both.Was, []string{"user"}) || !slices.Equal(both.Is, []string{"agent"}) {
		t.Errorf("three ways: %q %q %q", both.Base, both.Was, both.Is)
	}
	sh(t, dir, `git -C p config a.b again`)
	if err := store.Answer(t.Context(), both, true); err == nil {
		t.Error("a value was replaced that was never shown")
	}
	testkit.Must(t, store.Answer(t.Context(), gone, true))
	testkit.Must(t, store.Answer(t.Context(), added, false))
	testkit.Must(t, store.Answer(t.Context(), added, true)) // it was answered
	testkit.Must(t, store.Answer(t.Context(), both, false))
	testkit.Must(t, store.Clean(t.Context()))
	if left, err := store.Changes(); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	sh(t, dir, `test "$(git -C p config a.b)" = again; ! git -C p config a.gone; ! git -C p config a.new`)
}

// TestRepaired: a repository whose directories cannot be read is one again, so that git does not take the project for one.
func TestRepaired(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sh(t, dir, `git init -q -b main p`)
	store := gitdirs.Store(filepath.Join(dir, "store"))
	session, _, err := store.Begin(t.Context(), "a", []string{filepath.Join(dir, "p")})
	testkit.Must(t, err)
	testkit.Must(t, session.Started(1))
	sh(t, dir, `cd p; rm .git/HEAD; chmod 0 .git/objects .git/refs .git`)
	_, err = store.End(t.Context(), session)
	testkit.Must(t, err)
	for _, name := range []string{"", "objects", "refs"} {
		info, err := os.Lstat(filepath.Join(dir, "p", ".git", name))
		testkit.Must(t, err)
		if info.Mode()&0o700 != 0o700 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
	sh(t, dir, `git -C p status`)
}
