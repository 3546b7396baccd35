package main_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	main "github.com/promptware-os/pwos/cmd/pwos"
	"github.com/promptware-os/pwos/internal/testkit"
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

// TestHasGitSettings: a start waits for git if one of its files may have settings.
func TestHasGitSettings(t *testing.T) {
	t.Parallel()
	home, config := t.TempDir(), t.TempDir()
	if main.HasGitSettings(main.GitFiles(home, "")) || main.HasGitSettings(main.GitFiles(home, config)) {
		t.Error("there are settings before there is a file")
	}
	for _, path := range []string{filepath.Join(home, ".config/git/config"), filepath.Join(config, "git/config"), filepath.Join(home, ".gitconfig")} {
		testkit.Must(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o600)))
		if has := main.HasGitSettings(main.GitFiles(home, "")); has != (filepath.Dir(filepath.Dir(path)) != config) {
			t.Errorf("with %s: %v", path, has)
		}
		if has := main.HasGitSettings(main.GitFiles(home, config)); has == (path == filepath.Join(home, ".config/git/config")) {
			t.Errorf("with %s, and another directory of configurations: %v", path, has)
		}
		testkit.Must(t, os.Remove(path))
	}
}
