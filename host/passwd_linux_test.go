package host_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestHomeOfUser: the system says the program's HOME when it is asked for the home of the program's user, also in a strict sandbox.
func TestHomeOfUser(t *testing.T) {
	t.Parallel()
	h := open(t)
	if !host.MeansOf(h).Mounts {
		t.Skip("needs mount namespaces")
	}
	for _, mode := range []host.Mode{host.SandboxDefault, host.SandboxStrict} {
		c := shell(t, `u=$(id -un) && eval echo "~$u" >&2; echo x 2>/dev/null >/etc/passwd && echo changed >&2; exit 0`)
		c.Sandbox = mode
		c.Env = map[string]string{"HOME": filepath.Join(c.Dir, "home")}
		c.Log.Path = filepath.Join(t.TempDir(), "log")
		p := start(t, h, c)
		if exit := wait(t, p); exit.Code != 0 {
			t.Errorf("%v", exit)
		}
		if said := strings.TrimSpace(string(testkit.ReadFile(t, c.Log.Path))); said != c.Env["HOME"] {
			t.Errorf("%s: the home is %s, want %s", mode, said, c.Env["HOME"])
		}
	}
}
