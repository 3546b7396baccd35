package scripts_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/promptware-os/pwos/internal/screen"
	"github.com/promptware-os/pwos/internal/testkit"
)

// At a terminal pwos run asks once whether agents see a project's .env, and keeps the answer; an interrupt is none.
func TestAskEnv(t *testing.T) {
	t.Parallel()
	if !confines() {
		t.Skip("agents are confined and recognised only on Linux")
	}
	p := settle(t)
	work := t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(work, ".env"), []byte("TOKEN=s3cret\n"), 0o600))
	run := func() *screen.Screen {
		t.Helper()
		return sitDown(t, p, "run", "--dir", work, "--", "sh", "-c", `grep -c s3cret .env; read -r line; echo "got $line"; exit 5`)
	}
	end := func(s *screen.Screen, found string) {
		t.Helper()
		s.Expect(found + `\r\n`)
		s.Enter("typed\r")
		s.Expect("got typed")
		if got := s.Status(); got != 5 {
			t.Errorf("exit status %d", got)
		}
	}
	const question = `pwos: agents do not see what is in \.env\. Show it to agents of this project, from now on\? \[y/N\] `
	s := run()
	s.Expect(question)
	s.Enter("\x03")
	if got := s.Status(); got != -1 { // ended by the signal
		t.Errorf("exit status %d after an interrupt", got)
	}
	s = run()
	s.Expect(question)
	s.Enter("n")
	end(s, "0")
	end(run(), "0")
	out := p.command(t.Context(), "project", "forget", work)
	testkit.Must(t, out.Run())
	s = run()
	s.Expect(question)
	s.Enter("y")
	end(s, "1")
	end(run(), "1")
	testkit.Must(t, p.kill())
}

// At a terminal the first start of an agent host in a project says what it may do, in five lines, and asks whether the project's settings
// are used; the next one says nothing.
func TestFirstStart(t *testing.T) {
	t.Parallel()
	if !confines() {
		t.Skip("agents are confined and recognised only on Linux")
	}
	p := settle(t)
	work := t.TempDir()
	testkit.Must(t, errors.Join(os.MkdirAll(filepath.Join(work, ".git/objects"), 0o700), os.Mkdir(filepath.Join(work, ".git/refs"), 0o700),
		os.WriteFile(filepath.Join(work, ".git/HEAD"), []byte("ref: refs/heads/main\n"), 0o600), os.WriteFile(filepath.Join(work, ".git/config"), nil, 0o600)))
	testkit.Must(t, os.WriteFile(filepath.Join(work, "claude"), []byte("#!/bin/sh\necho it runs\n"), 0o700))
	run := func() *screen.Screen {
		t.Helper()
		return sitDown(t, p, "run", "--dir", work, "--", filepath.Join(work, "claude"))
	}
	s := run()
	s.Expect(`pwos: \S*claude runs confined in \S+ as "claude"\r\n`)
	s.Expect(`pwos: it writes here and in a home of its own, .*\r\n`)
	s.Expect(`pwos: it reaches its model, package registries and git hosts, by \d+ names; no other server.*\r\n`)
	s.Expect(`pwos: every step can be undone: pwos undo claude --last 10m; pwos steps claude shows them\r\n`)
	s.Expect(`pwos: questions appear here, and Ctrl-\] answers them; more: "pwos console".*\(profile coder: pwos profile show coder\)\r\n`)
	s.Expect("it runs")
	if got := s.Status(); got != 0 {
		t.Errorf("exit status %d", got)
	}
	s = run()
	s.Expect("^it runs")
	if got := s.Status(); got != 0 {
		t.Errorf("the second time: exit status %d", got)
	}
	testkit.Must(t, os.WriteFile(filepath.Join(work, ".pwos.toml"), []byte("profile = \"reader\"\n"), 0o600))
	const question = `pwos: the project has settings for its agents, \S+:\r\n  profile = "reader"\r\npwos: Use them, from now on, as they are\? \[y/N\] `
	for _, answer := range []string{"n", "y"} {
		s = run()
		s.Expect(question)
		s.Enter(answer)
		s.Expect("it runs")
		if got := s.Status(); got != 0 {
			t.Errorf("exit status %d after %s", got, answer)
		}
	}
	s = run()
	s.Expect("^it runs")
	if got := s.Status(); got != 0 {
		t.Errorf("with trusted settings: exit status %d", got)
	}
	testkit.Must(t, p.kill())
}
