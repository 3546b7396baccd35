package hosts_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestSessions: a host goes on inside with the session that its user had with it outside in the project, and sees none of another project.
func TestSessions(t *testing.T) {
	t.Parallel()
	for _, h := range presetHosts() {
		sessions := preset.Named(h.name).Sessions
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			m := newModel(t, h.command("cat marker"))
			p.configure(fmt.Sprintf("[upstream.%s]\nurl = %q\nheader = %q\nfrom = %q\nallow = [\"* /…\"]\n", h.model, m.url+h.url, h.header, "login:"+h.model))
			p.run("sh", "-c", "printf key | pwos login "+h.model)
			p.env = append(append(p.env, h.env...), "ANTHROPIC_API_KEY=", "OPENAI_API_KEY=")
			if sessions.Dir == "" {
				out, err := p.try("pwos", "home", "import", h.name)
				if err == nil || !strings.Contains(out, "sessions of all projects") {
					t.Errorf("%v: %s", err, out)
				}
				return
			}
			testkit.Must(t, errors.Join(os.Mkdir(p.Path("another"), 0o700), os.WriteFile(p.Path("another/marker"), []byte("xyzzy-of-another"), 0o600),
				os.WriteFile(p.Path("project/marker"), []byte("xyzzy-of-project"), 0o600)))
			// As a user would have it: the home of a host that ran in two projects.
			p.run("pwos", append([]string{"run", "--name", "before", "--profile", "coder", "--", h.name}, h.args...)...)
			m.expect("", "xyzzy-of-project")
			p.run("sh", append([]string{"-c", `cd ../another && exec "$@"`, "sh", "pwos", "run", "--name", "before", "--profile", "coder", "--", h.name}, h.args...)...)
			testkit.Must(t, os.RemoveAll(p.Path("home")))
			testkit.Must(t, os.Rename(p.StateDir()+"/homes/before", p.Path("home")))
			out := p.run("pwos", "home", "import", h.name)
			if again := p.run("pwos", "home", "import", h.name); !strings.Contains(again, "pwos: 0 files with a session copied") {
				t.Errorf("a second time: %s", again)
			}
			args := append(sessions.Resume, h.args...)
			if h.name == "codex" { // exec resume
				args = []string{"exec", "resume", "--last", "-m", "x", "--skip-git-repo-check", "go"}
			}
			out += p.run("pwos", append([]string{h.name}, args...)...)
			if last := m.whole(); !strings.Contains(last, "xyzzy-of-project") {
				t.Errorf("it does not go on with its session: %s\n%s", out, last[max(0, len(last)-2000):])
			}
			if found := testkit.FilesWith(t, "xyzzy-of-another", p.StateDir()+"/homes"); found != nil {
				t.Errorf("it has the session of another project: %s", found)
			}
		})
	}
}
