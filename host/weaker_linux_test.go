package host_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestWeaker: with each weaker form of the sandbox that this machine supports, hidden files stay hidden, and files next to
// them can be read.
func TestWeaker(t *testing.T) {
	t.Parallel()
	h := open(t)
	strict(t, h)
	for name, take := range map[string]func(*host.Means){
		"all":                      func(*host.Means) {},
		"no overlay":               func(m *host.Means) { m.Overlay = false },
		"no mounts":                func(m *host.Means) { m.Mounts, m.Overlay = false, false },
		"no Landlock":              func(m *host.Means) { m.ABI = 0 },
		"no seccomp":               func(m *host.Means) { m.Filter = false },
		"no namespaces":            func(m *host.Means) { *m = host.Means{ABI: m.ABI, Filter: true} },
		"no namespaces, no filter": func(m *host.Means) { *m = host.Means{ABI: m.ABI} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			has := host.MeansOf(h)
			take(&has)
			place := shared(t)
			for _, dir := range []string{"state", "work"} {
				testkit.Must(t, os.Mkdir(filepath.Join(place, dir), 0o700))
			}
			for _, file := range []string{"state/key", "secret", "beside"} {
				testkit.Must(t, os.WriteFile(filepath.Join(place, file), []byte("x"), 0o600))
			}
			c := helper(t, "t-write", "read", filepath.Join(place, "state/key"), "read", filepath.Join(place, "secret"),
				"read", filepath.Join(place, "beside"), "write", filepath.Join(place, "beside"), "write", "own")
			c.Dir = filepath.Join(place, "work")
			c.Private, c.Hide = []string{filepath.Join(place, "state")}, []string{filepath.Join(place, "secret")}
			p, err := host.StartAt(t.Context(), h, c, has)
			testkit.Must(t, err)
			t.Cleanup(func() { testkit.Must(t, p.Conn().Close()) })
			ok := outcomes(all(t, p))
			for i, want := range []bool{false, false, true, false, true} {
				if len(ok) != 5 || ok[i] != want {
					t.Fatalf("got %v, want only refusals of state, secret and writing outside", ok)
				}
			}
		})
	}
}
