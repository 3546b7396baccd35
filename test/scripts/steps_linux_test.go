package scripts_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/promptware-os/pwos/internal/screen"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestUndoAsks: at a terminal, an undo shows what it would do and does it only if it is told to, and only if it is still the same; a run
// says at its end how to see and undo what it changed, and at its begin if that cannot be.
func TestUndoAsks(t *testing.T) {
	t.Parallel()
	if !confines() {
		t.Skip("agents are confined and recognised only on Linux")
	}
	p := settle(t)
	t.Cleanup(func() { testkit.Must(t, p.kill()) })
	shop, outside := filepath.Join(p.Path("home"), "shop"), t.TempDir()
	testkit.Must(t, os.MkdirAll(shop, 0o755))
	one := filepath.Join(shop, "one")
	testkit.Must(t, os.WriteFile(one, []byte("first\n"), 0o644))
	exists := func(want bool) {
		t.Helper()
		if _, err := os.Lstat(one); (err == nil) != want {
			t.Fatalf("%s: %v, want it to exist: %t", one, err, want)
		}
	}

	s := sitDown(t, p, "run", "--dir", shop, "--name", "fix", "--", "sh", "-c", `rm one; echo new >two; exit 3`)
	s.Expect(`pwos: fix changed files in 1 step \(\+1 -1\): pwos diff fix, pwos undo fix --tree .*/home/shop\r\n`)
	if got := s.Status(); got != 3 {
		t.Errorf("exit status %d", got)
	}
	s = sitDown(t, p, "run", "--dir", shop, "--name", "make", "--", "sh", "-c", "echo all: >Makefile; echo x >CLAUDE.md")
	s.Expect(`it changed what your tools run or obey: look before you build, commit or start an agent there, at CLAUDE.md, Makefile: pwos diff make .*/home/shop/CLAUDE.md\r\n`)
	s.Status()
	s = sitDown(t, p, "run", "--dir", outside, "--", "sh", "-c", "echo begun")
	s.Expect(`pwos: what changes in .* cannot be undone: it is neither in the home directory nor in a repository\r\n`)
	s.Expect("begun")
	s.Status()

	// What a program starts may be a step without files, before or after that with its files: only the run is named.
	const question = `makes     one\r\n  removes   two\r\npwos: take back 2 changes\? \[y/N\] `
	for _, refusal := range []string{"\r", "no\r", "\x03"} {
		s = sitDown(t, p, "undo", "fix", "--tree", shop)
		s.Expect(question)
		s.Enter(refusal)
		if s.Status() == 0 {
			t.Errorf("%q is exit status 0", refusal)
		}
		exists(false)
	}
	s = sitDown(t, p, "undo", "fix", "--tree", shop)
	s.Expect(question)
	testkit.Must(t, os.Remove(filepath.Join(shop, "two"))) // then the plan is another one
	s.Enter("y\r")
	s.Expect(`pwos: the files are not those of the plan any more: nothing was written`)
	if got := s.Status(); got != 8 {
		t.Errorf("exit status %d", got)
	}
	exists(false)
	s = sitDown(t, p, "undo", "fix", "--tree", shop)
	s.Expect(`makes     one\r\npwos: take back 1 change\? \[y/N\] `)
	s.Enter("y\r")
	s.Expect(`undid fix:[0-9-]+ in .*/home/shop \(\+1\); to revert the undo: "pwos undo fix:[0-9]+"`)
	if got := s.Status(); got != 0 {
		t.Errorf("exit status %d", got)
	}
	exists(true)
	s = sitDown(t, p, "undo", "fix", "--tree", shop)
	s.Expect(`there is nothing to take back`)
	if got := s.Status(); got != 0 {
		t.Errorf("exit status %d", got)
	}

	// Following shows what there is, and each step as it is recorded.
	s = sitDown(t, p, "steps", "fix", "-f")
	s.Expect(`fix:[0-9]+ +[0-9:]+ +activity +\+1 -1 +undone: one, two\r\n`)
	s.Expect(`undo +\+1 +of [0-9-]+: one\r\n`)
	p.pwos(t, "run", "--dir", shop, "--name", "other", "--", "sh", "-c", "echo x >other")
	p.pwos(t, "run", "--dir", shop, "--name", "fix", "--", "sh", "-c", "echo x >three")
	s.Expect(`fix:[0-9]+ +[0-9:]+ +activity +\+1 +three\r\n`)
	s.Enter("\x03")
	s.Status()
}

// TestReviewAsks: at a terminal, a run says that it works on a copy, or goes on with one, and what can be done with it; apply and discard
// show what they would do, and do it only if they are told to.
func TestReviewAsks(t *testing.T) {
	t.Parallel()
	if !confines() {
		t.Skip("agents are confined and recognised only on Linux")
	}
	p := settle(t)
	t.Cleanup(func() { testkit.Must(t, p.kill()) })
	shop := filepath.Join(p.Path("home"), "shop")
	testkit.Must(t, os.MkdirAll(shop, 0o755))
	made := filepath.Join(shop, "made")
	exists := func(want bool) {
		t.Helper()
		if _, err := os.Lstat(made); (err == nil) != want {
			t.Fatalf("%s: %v, want it to exist: %t", made, err, want)
		}
	}
	const next = `pwos diff fix, pwos apply fix, pwos discard fix\r\n`
	s := sitDown(t, p, "run", "--review", "--dir", shop, "--name", "fix", "--", "sh", "-c", "echo new >made")
	s.Expect(`pwos: fix works on a copy of its directory, which is made first\r\n`)
	s.Expect(`pwos: fix changed files in its copy \(\+1\): ` + next)
	s.Status()
	s = sitDown(t, p, "run", "--review", "--dir", shop, "--name", "fix", "--", "cat", "made")
	s.Expect(`pwos: fix goes on with its copy of .*/home/shop, of [-0-9:. ]+: pwos diff fix shows what it has changed, pwos discard fix begins again\r\n`)
	s.Expect("new")
	s.Status()
	for verb, question := range map[string]string{"apply": "take over", "discard": "drop"} {
		for _, refusal := range []string{"\r", "no\r", "\x03"} {
			s = sitDown(t, p, verb, "fix")
			s.Expect(`pwos: ` + question + ` 1 change\? \[y/N\] `)
			s.Enter(refusal)
			if s.Status() == 0 {
				t.Errorf("%s: %q is exit status 0", verb, refusal)
			}
		}
	}
	exists(false)
	s = sitDown(t, p, "apply", "fix")
	s.Expect(`  makes     made\r\npwos: take over 1 change\? \[y/N\] `)
	s.Enter("y\r")
	s.Expect(`applied fix to .*/home/shop \(\+1\); the copy is removed; to revert it: "pwos undo fix:[0-9]+"`)
	if got := s.Status(); got != 0 {
		t.Errorf("exit status %d", got)
	}
	exists(true)
	s = sitDown(t, p, "run", "--review", "--dir", shop, "--name", "fix", "--", "rm", "made")
	s.Status()
	s = sitDown(t, p, "discard", "fix")
	s.Expect(`pwos: drop 1 change\? \[y/N\] `)
	s.Enter("y\r")
	s.Expect(`discarded the copy of .*/home/shop that fix worked on`)
	s.Status()
	exists(true)
}

// At a terminal, a backup with what looks secret asks for a new passphrase, twice, and a restore for that one, until it is right or empty.
func TestBackupAsks(t *testing.T) {
	t.Parallel()
	if !confines() {
		t.Skip("agents are confined and recognised only on Linux")
	}
	p := settle(t)
	t.Cleanup(func() { testkit.Must(t, p.kill()) })
	shop := filepath.Join(p.Path("home"), "shop")
	testkit.Must(t, os.MkdirAll(shop, 0o755))
	testkit.Must(t, os.WriteFile(filepath.Join(shop, ".env"), []byte("TOKEN=x\n"), 0o600))
	p.pwos(t, "run", "--dir", shop, "--name", "fix", "--sandbox", "off", "--", "sh", "-c", "echo TOKEN=y >.env")
	file := filepath.Join(p.Dir, "backup")
	s := sitDown(t, p, "backup", "--steps", file)
	for _, typed := range []string{"sesame\r", "other\r", "open sesame\r", "open sesame\r"} {
		s.Expect("pwos: (passphrase for the key of what looks secret in files \\(empty: leave the key out\\)|the same again): ")
		s.Enter(typed)
	}
	s.Expect(`steps +1 store\r\n`)
	if got := s.Status(); got != 0 {
		t.Errorf("exit status %d", got)
	}
	for name, tt := range map[string]struct {
		typed  []string
		says   string
		status int
	}{
		"right":   {[]string{"sesame\r", "open sesame\r"}, `state directory`, 0},
		"wrong":   {[]string{"a\r", "b\r", "c\r"}, `the passphrase of the key of steps is wrong: nothing was restored`, 3},
		"none":    {[]string{"\r"}, `the key of what looks secret in files was left out`, 0},
		"stopped": {[]string{"\x03"}, `interrupted`, 1},
	} {
		cmd := p.command(t.Context(), "restore", file)
		state := filepath.Join(p.Dir, name)
		cmd.Env = append(cmd.Env, "TERM=dumb", "PWOS_STATE_DIR="+state)
		s := screen.Sit(t, cmd, testkit.Patience)
		for _, typed := range tt.typed {
			s.Expect("pwos: passphrase for the key of what looks secret in files \\(empty: leave the key out\\): ")
			s.Enter(typed)
		}
		s.Expect(tt.says)
		if got := s.Status(); got != tt.status {
			t.Errorf("%s: exit status %d", name, got)
		}
		_, err := os.Lstat(filepath.Join(state, "steps", "key"))
		if (err == nil) != (name == "right") {
			t.Errorf("%s: the key: %v", name, err)
		}
		if _, err := os.Lstat(state); (err == nil) != (tt.status == 0) {
			t.Errorf("%s: the state directory: %v", name, err)
		}
	}
}
