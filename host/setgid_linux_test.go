package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestSetgid: a program sets the bit setgid of its directories, by each way to name one, and of nothing else, whatever the means.
func TestSetgid(t *testing.T) {
	t.Parallel()
	h := open(t)
	outside := shared(t)
	const script = `mkdir -p d/in e g; echo x >file; ln -s d link; ln -s file tofile
		try() { if "$@" 2>/dev/null; then printf 'y' >&2; else printf 'n' >&2; fi; }
		try chmod 2755 d; try chmod 2755 d/in/../in; try chmod 2775 "$PWD/e"; try chmod 2755 link; (cd d && try chmod 2755 ../g)
		try chmod 2755 file; try chmod 2755 tofile; try chmod 4755 d; try chmod 6755 d; try chmod 2755 nothing
		try chmod 2755 "$OUTSIDE"; try chmod 2755 /usr; try chmod 2755 /proc/self/fd/9; try chmod 2755 /proc/self/fd/8 9<d 8<file
		exit 0`
	for name, take := range map[string]func(*host.Means){
		"all":         func(*host.Means) {},
		"no Landlock": func(m *host.Means) { m.ABI = 0 },
		"no notices":  func(m *host.Means) { m.Notify = false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			has := host.MeansOf(h)
			if !has.Mounts || !has.Filter {
				t.Skip("needs mount namespaces and seccomp")
			}
			take(&has)
			c := shell(t, script)
			c.Env = map[string]string{"OUTSIDE": outside}
			c.Log.Path = filepath.Join(t.TempDir(), "log")
			p, err := host.StartAt(t.Context(), h, c, has)
			testkit.Must(t, err)
			t.Cleanup(func() { testkit.Must(t, p.Conn().Close()) })
			if exit := wait(t, p); exit.Code != 0 {
				t.Errorf("%v", exit)
			}
			want := strings.Repeat("y", 5) + strings.Repeat("n", 9)
			if !has.Notify {
				want = strings.Repeat("n", 14)
			}
			if said := strings.TrimSpace(string(testkit.ReadFile(t, c.Log.Path))); said != want {
				t.Errorf("got %s, want %s", said, want)
			}
			for name, set := range map[string]bool{"d": has.Notify, "d/in": has.Notify, "e": has.Notify, "g": has.Notify, "file": false} {
				info, err := os.Stat(filepath.Join(c.Dir, name))
				testkit.Must(t, err)
				if got := info.Mode()&os.ModeSetgid != 0; got != set {
					t.Errorf("%s: %s", name, info.Mode())
				}
			}
		})
	}
	info, err := os.Stat(outside)
	testkit.Must(t, err)
	if info.Mode()&os.ModeSetgid != 0 {
		t.Errorf("%s has it", outside)
	}
}
