package host_test

import (
	"bufio"
	"os"
	"path/filepath"
	"testing"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestTmp: a program's directory for temporary files is on disk, empty at each start, and removed at the end, also if
// the program has taken its own rights to what is in it, or an earlier one left a link there.
func TestTmp(t *testing.T) {
	t.Parallel()
	h := open(t)
	for name, test := range map[string]struct {
		edit func(*host.Command)
		take func(*host.Means)
		tmp  string // "": Command.Tmp
	}{
		"/tmp":       {tmp: "/tmp"},
		"strict":     {func(c *host.Command) { c.Sandbox = host.SandboxStrict }, nil, "/tmp"},
		"/tmp taken": {func(c *host.Command) { c.Read = append(c.Read, "/tmp") }, nil, ""},
		"off":        {func(c *host.Command) { c.Sandbox = host.SandboxOff }, nil, ""},
		"no mounts":  {nil, func(m *host.Means) { m.Mounts, m.Overlay = false, false }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			strict(t, h)
			place, has := shared(t), host.MeansOf(h)
			victim := filepath.Join(place, "victim")
			c := shell(t, `printf '%s\n' "$TMPDIR"; ls -A "$TMPDIR"; mkdir -p "$TMPDIR/a/b" && echo x >"$TMPDIR/a/b/x" && chmod 0 "$TMPDIR/a" && echo made; read line`)
			c.Tmp, c.Read = filepath.Join(place, "state", "tmp"), nil
			c.Dir, c.Private = filepath.Join(place, "work"), []string{filepath.Join(place, "state")}
			for _, dir := range []string{c.Dir, victim, c.Private[0]} {
				testkit.Must(t, os.Mkdir(dir, 0o700))
			}
			testkit.Must(t, os.WriteFile(filepath.Join(victim, "file"), nil, 0o600))
			testkit.Must(t, os.Symlink(victim, c.Tmp))
			if test.edit != nil {
				test.edit(&c)
			}
			if test.take != nil {
				test.take(&has)
			}
			want := c.Tmp
			if test.tmp != "" {
				want = test.tmp
			}
			for range 2 {
				p, err := host.StartAt(t.Context(), h, c, has)
				testkit.Must(t, err)
				t.Cleanup(func() { testkit.Must(t, p.Conn().Close()) })
				lines := bufio.NewScanner(p.Conn())
				for _, want := range []string{want, "made"} { // nothing is listed between them
					if lines.Scan(); lines.Text() != want {
						t.Errorf("got %q, want %q", lines.Text(), want)
					}
				}
				if _, err := os.Lstat(filepath.Join(c.Tmp, "a")); err != nil {
					t.Errorf("it is not on disk: %v", err)
				}
				all(t, p)
				wait(t, p)
				if _, err := os.Lstat(c.Tmp); !os.IsNotExist(err) {
					t.Errorf("after the end: %v", err)
				}
			}
			for dir, want := range map[string]int{c.Dir: 0, victim: 1} {
				if entries, err := os.ReadDir(dir); err != nil || len(entries) != want {
					t.Errorf("%s has %v, %v", dir, entries, err)
				}
			}
		})
	}
}
