package scripts_test

import (
	"path/filepath"
	"testing"

	"github.com/promptware-os/pwos/internal/screen"
)

// TestGitAsks: at a terminal, pwos run asks about each change of an agent that is not taken over by itself. Only "yes" takes it, an interrupt
// leaves the rest.
func TestGitAsks(t *testing.T) {
	t.Parallel()
	asks := func(t *testing.T, script string, args ...string) (s *screen.Screen, outside func(line, want string)) {
		t.Helper()
		p := withGit(t)
		dir := filepath.Join(t.TempDir(), "p")
		if out, status := bash(t, p, filepath.Dir(dir), `mkdir go; git init -q -b main p; cd p; git config a.both start; git config a.old old; git remote add origin https://example.com/x.git`); status != 0 {
			t.Fatal(out)
		}
		args = append(append([]string{"run", "--dir", dir, "--read", filepath.Dir(dir) + "/go"}, args...), "--", "sh", "-c", "echo begun; "+script+"; exit 5")
		return sitDown(t, p, args...), func(line, want string) {
			t.Helper()
			if out, _ := bash(t, p, dir, line); out != want {
				t.Errorf("%s: %q, want %q", line, out, want)
			}
		}
	}
	const question = `"yes" does, Enter drops it, Ctrl-C keeps it for "pwos git" \[yes/NO\] `
	t.Run("each", func(t *testing.T) {
		t.Parallel()
		s, outside := asks(t, `git config remote.origin.pushurl "$(printf 'a\033[2Jb\nc')"; git config --unset a.old; git config --add a.both agent; git config --unset-all a.both start; git config core.fsmonitor 'x y'; `+
			`git config remote.origin.url https://example.com/y.git; printf '#!/bin/sh\n\033[2Jrun\n' >.git/hooks/pre-push; chmod +x .git/hooks/pre-push; echo changed; while ! grep -qs both ../go/on; do sleep 0.1; done`)
		s.Expect("\nchanged")
		outside(`git config a.both user; echo both >../go/on`, "")
		s.Expect(`pwos: git: the agent changed a\.both in .*/config\r\npwos:   at its start: start\r\npwos:   yours now:    user\r\npwos:   the agent's:  agent\r\n`)
		s.Expect(question)
		s.Enter("no\r")
		s.Expect(`removed a\.old in .*/config\r\npwos:   yours now:    old\r\npwos:   the agent's:  \(none\)\r\n`)
		s.Expect(question)
		s.Enter("yex\x7fs\r")
		s.Expect(`added core\.fsmonitor in .*/config: your git would run it, or what it names\r\npwos:   yours now:    \(none\)\r\npwos:   the agent's:  'x y'\r\n`)
		s.Expect(question)
		s.Enter("\r")
		s.Expect(`added remote\.origin\.pushurl in .*\r\n.*\r\npwos:   the agent's:  \$'a\\033\[2Jb\\012c'\r\n`)
		s.Expect(question)
		s.Enter("y\r")
		s.Expect(`changed remote\.origin\.url in .*\r\npwos:   yours now:    https://example.com/x\.git\r\npwos:   the agent's:  https://example.com/y\.git\r\n`)
		s.Expect(question)
		s.Enter("YES\r")
		s.Expect(`added hooks/pre-push in .*hooks: your git would run it, or what it names\r\npwos:   the agent's, of mode 755:\r\npwos:   \| #!/bin/sh\r\npwos:   \| \\u001b\[2Jrun\r\n`)
		s.Expect(question)
		s.Enter("yes\r")
		if got := s.Status(); got != 5 {
			t.Errorf("exit status %d", got)
		}
		outside(`git config --local --list | grep -v -e ^core -e '^user'; cat .git/hooks/pre-push | wc -l; pwos git ls`,
			"a.both=user\nremote.origin.url=https://example.com/y.git\nremote.origin.fetch=+refs/heads/*:refs/remotes/origin/*\n2\n")
	})
	t.Run("interrupted", func(t *testing.T) {
		t.Parallel()
		s, outside := asks(t, `git config a.b c; git config a.old new; git config a.z z`)
		s.Expect(`a\.b in`)
		s.Expect(question)
		s.Enter("yes\r")
		s.Expect(`a\.old in`)
		s.Expect(question)
		s.Enter("yes\x03")
		s.Expect(`pwos: git: the agent changed a\.old, a\.z, for itself only: "pwos git" shows how`)
		if got := s.Status(); got != 5 {
			t.Errorf("exit status %d", got)
		}
		outside(`git config a.b; git config a.old; git config a.z; pwos git --json | grep -c '"a.old"\|"a.z"'; pwos git drop a.old a.z`, "c\nold\n2\n")
	})
	t.Run("typed before", func(t *testing.T) {
		t.Parallel()
		s, outside := asks(t, `git config a.b c; while ! test -e ../go/on; do sleep 0.1; done`, "--no-tty")
		s.Expect("begun")
		s.Enter("yes\r") // to the program, which does not read it
		outside(`touch ../go/on`, "")
		s.Expect(question)
		s.Enter("\r")
		if got := s.Status(); got != 5 {
			t.Errorf("exit status %d", got)
		}
		outside(`git config a.b`, "")
	})
	t.Run("too much", func(t *testing.T) {
		t.Parallel()
		s, outside := asks(t, `git config a.long "$(head -c 5000 /dev/zero | tr '\0' x)"; yes echo | head -100 >.git/hooks/pre-push; ln -s /etc/passwd .git/hooks/pre-commit`)
		s.Expect(`pwos: git: the agent changed a\.long, hooks/pre-commit, hooks/pre-push, for itself only`)
		if got := s.Status(); got != 5 {
			t.Errorf("exit status %d", got)
		}
		outside(`pwos git drop a.long hooks/pre-commit hooks/pre-push; pwos git | grep long`, "")
		s, outside = asks(t, `for n in $(seq 30); do git config many.k$n v; done`)
		s.Expect(`pwos: git: the agent changed many\.k1, .*…, for itself only`)
		if got := s.Status(); got != 5 {
			t.Errorf("exit status %d", got)
		}
		outside(`git config many.k1; pwos git | grep -c many.k; pwos git drop $(seq -f many.k%g 30)`, "30\n")
	})
	t.Run("no terminal", func(t *testing.T) {
		t.Parallel()
		p, dir := withGit(t), t.TempDir()
		out, status := bash(t, p, dir, `git init -q; setsid pwos run -- git config b.c d </dev/null; git config b.c; pwos git drop b.c`)
		if want := "pwos: git: the agent changed b.c, for itself only: \"pwos git\" shows how, \"pwos git take\" does it for you too\n"; out != want || status != 0 {
			t.Errorf("%d %q", status, out)
		}
	})
}
