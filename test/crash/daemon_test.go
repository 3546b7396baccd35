package crash_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "pwc")
	if err != nil {
		panic(err)
	}
	pwosd = filepath.Join(dir, "pwosd")
	if out, err := exec.Command("go", "build", "-o", pwosd, "../../cmd/pwosd").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build pwosd: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

var pwosd string // the real daemon

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

// place is what a daemon leaves behind when it is killed.
type place struct{ dir string }

func newPlace(t *testing.T) *place {
	t.Helper()
	dir := testkit.Dir(t)
	p := &place{dir: dir}
	if err := os.WriteFile(p.path("config.toml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *place) path(name string) string { return filepath.Join(p.dir, name) }
func (p *place) socket() string          { return p.path("r/kernel.sock") }
func (p *place) journal() string         { return p.path("s/journal") }

func (p *place) daemon() *testkit.Daemon {
	return &testkit.Daemon{Command: []string{pwosd}, Dir: p.dir}
}
