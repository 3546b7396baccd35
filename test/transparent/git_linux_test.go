package transparent_test

import "strings"

// gitSituations are each a script that git's user would write.
func gitSituations() []situation {
	const dated = "export GIT_AUTHOR_DATE='@0 +0000' GIT_COMMITTER_DATE='@0 +0000'; "
	// commit FILE TEXT
	const commit = "commit() { echo \"$2\" >>\"$1\" && git add \"$1\" && git commit -qm \"$2\"; }\n"
	var list []situation
	for _, script := range []string{
		// init, commit, log
		"git init\ngit status --short --branch\ncommit a one; commit a two\ngit log --format='%H %an <%ae> %s'\ngit diff HEAD~ --stat\ngit fsck --strict",
		// branches and tags
		"git init -q; commit a one\ngit switch -c side; commit b two\ngit branch -v; git tag -a v1 -m one; git describe; git branch -m side other; git branch -D trunk; git for-each-ref",
		// merge with a conflict
		"git init -q; commit a base; git switch -qc side; commit a theirs; git switch -q trunk; commit a ours\ngit merge side; echo $?\ngit status --porcelain; cat a; git merge --abort; git merge -X ours -m merged side; cat a",
		// rebase, with a conflict, and with an editor
		"git init -q; commit a base; git switch -qc side; commit b one; commit c two; git switch -q trunk; commit d three\ngit rebase trunk side; git log --format=%s\nGIT_SEQUENCE_EDITOR='sed -i 2s/pick/drop/' git rebase -i trunk; git log --format=%s; git reflog | wc -l",
		// a linked work tree
		"git init -q main; cd main; commit a one\ngit worktree add ../linked -b side; cd ../linked; commit b two; git rev-parse --git-common-dir; git worktree list | wc -l; git -C ../main log --format=%s side; git worktree remove --force ../linked; git worktree prune -v",
		// a submodule
		"git init -q lib; (cd lib; commit l one); git init -q top; cd top\ngit -c protocol.file.allow=always submodule add ../lib lib; git commit -qm sub; git submodule status; (cd lib; commit l two); git status --porcelain; git submodule update; git submodule foreach -q 'git log --format=%s -1'",
		// stash
		"git init -q; commit a one; echo changed >>a; echo new >b\ngit stash push -u; git status --porcelain; git stash list; git stash pop; cat a b",
		// --separate-git-dir
		"git init -q --separate-git-dir=store tree; cat tree/.git | sed 's|.*/||'; cd tree; commit a one; git log --format=%s; git rev-parse --is-inside-work-tree; git gc -q; git fsck",
		// a sparse checkout
		"git init -q; mkdir x y; commit x/a one; commit y/b two; commit top three\ngit sparse-checkout set x; ls; git sparse-checkout list; git config core.sparseCheckout; git sparse-checkout disable; ls",
		// a partial clone
		"git init -q origin; (cd origin; commit a one; commit a two; git config uploadpack.allowFilter true)\ngit clone --filter=blob:none --no-checkout file://$PWD/origin part; cd part; git config remote.origin.promisor; git checkout -q trunk; cat a; git log --format=%s",
		// hooks
		"git init -q; mkdir -p .git/hooks; printf '#!/bin/sh\\necho checked; test ! -e stop\\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit\ncommit a one; touch stop; commit a two; echo $?; git commit -qnam three; git log --format=%s",
		// format-patch and am
		"git init -q; commit a one; commit a two; git format-patch -1 --no-signature; git reset -q --hard HEAD~; git am 0001-two.patch; git log --format='%s %an'; git bundle create -q all.bundle --all; git bundle verify -q all.bundle; rm all.bundle",
		// fetch, push, remotes
		"git init -q --bare hub; git clone -q hub work 2>&1; cd work; commit a one; git push -q -u origin trunk; git remote -v | sed 's|\\t.*/|\\t|'; git branch -vv; cd ..; git clone -q hub other; cd other; commit a two; git push; cd ../work; git pull; git config --list --local | grep -v '/'",
		// settings, attributes, archives, blame, bisect
		"git init -q; for i in 1 2 3 4 5; do commit a $i; done; git bisect start HEAD HEAD~4 >/dev/null; git bisect run sh -c '! grep -q 4 a'; git bisect reset -q; git blame -s a | cut -c1-7; git archive HEAD | tar -t; git grep -n 3; git config user.name Other; git config --get-regexp 'user.*'; git cherry-pick --quit; git clean -ndx",
	} {
		list = append(list, situation{line: "RUN bash <<'END'\n" + dated + commit + script + "\nEND"})
	}
	// Each command by itself, in a repository of the user.
	list = append(list, situation{line: strings.ReplaceAll(`git init -q; git config core.logAllRefUpdates false; echo a >a; RUN git add a; RUN env D git commit -qm one; git switch -qc side; echo b >>a; RUN env D git commit -qam two
RUN git switch -q trunk; RUN git merge --ff-only side; git log --oneline; git status --porcelain --ignored; RUN git diff --quiet; echo $?`,
		"D", "GIT_AUTHOR_DATE='@0 +0000' GIT_COMMITTER_DATE='@0 +0000'")})
	return list
}
