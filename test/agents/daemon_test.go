package agents_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// settings move the clock by hand, end programs quickly and restart them soon.
const settings = `
[clock]
interval = "0s"
[agents]
grace = "300ms"
restart_delay = "10ms"
`

// place is what a daemon leaves behind when it is killed.
type place struct{ dir string }

func newPlace(t testing.TB) *place {
	t.Helper()
	dir := testkit.Dir(t)
	p := &place{dir: dir}
	p.configure(t, settings)
	return p
}

func (p *place) configure(t testing.TB, text string) {
	t.Helper()
	testkit.Must(t, os.WriteFile(p.path("config.toml"), []byte(text), 0o600))
}

func (p *place) path(name string) string { return filepath.Join(p.dir, name) }
func (p *place) socket() string          { return p.path("r/kernel.sock") }

// start runs a daemon at a new place until the test ends.
func start(t testing.TB) (*place, *testkit.Process) {
	t.Helper()
	p := newPlace(t)
	return p, p.launch(t)
}

// launch starts a daemon and waits until clients may connect. With the test it ends in good order, if it runs.
func (p *place) launch(t testing.TB) *testkit.Process {
	t.Helper()
	d := testkit.Daemon{Command: []string{self(t), "the-daemon"}, Dir: p.dir, Env: []string{"PATH=" + os.Getenv("PATH")}}
	l := d.Start(t)
	t.Cleanup(func() {
		if l.Stop(t); t.Failed() {
			t.Logf("daemon's log:\n%s", l.Output())
		}
	})
	return l
}

// self is this program, which is also every program that the tests start.
func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	testkit.Must(t, err)
	return path
}

// alive reports whether a process of the system is there, and no zombie.
func alive(osPID int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", osPID))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}
