package main_test

import (
	"regexp"
	"testing"

	main "github.com/promptware-os/pwos/cmd/pwos"
)

// TestGitKeys: no setting that runs a program, names a place, or needs a key comes from the user's git to an agent's.
func TestGitKeys(t *testing.T) {
	t.Parallel()
	keys := regexp.MustCompile(main.GitKeys)
	for _, key := range []string{"user.name", "user.email", "init.defaultbranch", "pull.rebase", "push.default", "merge.conflictstyle", "core.autocrlf", "color.ui", "advice.detachedhead", "filter.lfs.smudge"} {
		if !keys.MatchString(key) {
			t.Errorf("%s is not passed on", key)
		}
	}
	for _, key := range []string{
		"core.hookspath", "core.fsmonitor", "core.pager", "core.editor", "core.sshcommand", "core.excludesfile", "core.attributesfile", "credential.helper", "include.path",
		"includeif.gitdir:~/.path", "alias.x", "url.git@x:.insteadof", "http.proxy", "http.extraheader", "gpg.program", "commit.gpgsign", "tag.gpgsign", "push.gpgsign",
		"user.signingkey", "log.showsignature", "merge.tool", "merge.x.driver", "diff.external", "diff.x.textconv", "filter.x.smudge", "init.templatedir", "fetch.bundleuri",
		"submodule.x.url", "remote.origin.url", "branch.main.merge", "sendemail.smtppass", "xuser.name", "user.namex",
	} {
		if keys.MatchString(key) {
			t.Errorf("%s is passed on", key)
		}
	}
}
