package crash_test

import (
	"os"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// settings keep the clock still, so that a delta's tick is no matter of time, and leave room for all that is sent.
const settings = `
[clock]
interval = "0s"
[ipc]
mailbox = 1000000
[resources]
gpu = 1000000000
[journal]
snapshot_every = 200
`

func newPlace(t *testing.T) *testkit.Place {
	t.Helper()
	return testkit.NewPlace(t, settings)
}

func daemonAt(t *testing.T, p *testkit.Place) *testkit.Daemon {
	t.Helper()
	return &testkit.Daemon{Command: []string{testkit.Program(t, "pwosd")}, Dir: p.Dir}
}
