package scripts_test

import (
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
