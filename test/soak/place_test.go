package soak_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
	"github.com/promptware-os/pwos/journal"
)

// settings keep the clock still, so that it moves by calls only.
const settings = `
[clock]
interval = "0s"
[resources]
gpu = 1000
`

// place is a testkit.Place that counts the connections to its kernel.
type place struct {
	*testkit.Place
	connections atomic.Int64 // past the prologue, of the kernel that runs
}

func newPlace(t *testing.T) *place {
	t.Helper()
	return &place{Place: testkit.NewPlace(t, settings)}
}

// start starts a kernel in this process, where its heap and its goroutines can be counted.
func (p *place) start(t *testing.T) (stop func()) {
	t.Helper()
	cfg := testkernel.Settings(p.Place)
	cfg.Clock.Interval = 0
	cfg.Resources = map[string]float64{"gpu": 1000}
	p.connections.Store(0)
	return testkernel.Start(t, cfg)
}

// verify checks the journal, and returns how many entries and bytes it has.
func (p *place) verify(t *testing.T) string {
	t.Helper()
	report, err := journal.Verify(t.Context(), nil, p.Path("s/journal"), journal.VerifyOptions{})
	testkit.Must(t, err)
	for _, f := range report.Findings {
		t.Error(f)
	}
	files, err := filepath.Glob(p.Path("s/journal/*.ndjson"))
	testkit.Must(t, err)
	var bytes int64
	for _, name := range files {
		info, err := os.Stat(name)
		testkit.Must(t, err)
		bytes += info.Size()
	}
	return fmt.Sprintf("%d entries, %d MB, %d segments", report.Entries, bytes>>20, len(files))
}
