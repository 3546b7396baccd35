package agents_test

import (
	"os"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
)

// settings advance the clock by hand, end programs quickly and restart them soon.
const settings = `
[clock]
interval = "0s"
[agents]
grace = "300ms"
restart_delay = "10ms"
`

// place is a testkit.Place whose kernel is this program.
type place struct{ *testkit.Place }

func newPlace(t testing.TB) *place {
	t.Helper()
	return &place{testkit.NewPlace(t, settings)}
}

// start runs a daemon at a new place until the test ends.
func start(t testing.TB) (*place, *testkit.Process) {
	t.Helper()
	p := newPlace(t)
	return p, p.launch(t)
}

// launch starts a daemon and waits until clients may connect. The test's end ends it cleanly, if it runs.
func (p *place) launch(t testing.TB) *testkit.Process {
	t.Helper()
	return p.launchAs(t, self(t))
}

// launchAs is launch for a command that becomes this program.
func (p *place) launchAs(t testing.TB, command ...string) *testkit.Process {
	t.Helper()
	return p.Start(t, testkit.Daemon{Command: command, Env: testkernel.Self(t).Env})
}

// self returns this program, which is also every program that the tests start.
func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	testkit.Must(t, err)
	return path
}
