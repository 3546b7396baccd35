package soak_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
	"github.com/promptware-os/pwos/journal"
)

func TestMain(m *testing.M) { testkernel.Main(m) }

// beside runs a test of the real daemon in parallel with others, after those that read the memory of this process. In a long run each runs
// alone, for the times that they log.
func beside(t *testing.T) {
	t.Helper()
	if os.Getenv("PWOS_LONG") == "" {
		t.Parallel()
	}
}

// settings stop the kernel's clock, so that only calls move it.
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

// program is the real daemon.
type program struct {
	*testkit.Process
	place *place
}

// launch starts the real daemon with the present state, and waits until clients can connect.
func (p *place) launch(t *testing.T) *program {
	t.Helper()
	d := testkit.Daemon{Command: []string{testkit.Program(t, "pwosd")}, Dir: p.Dir}
	return &program{d.Start(t), p}
}

// footprint is the daemon's use of resources, by the operating system.
type footprint struct{ memory, descriptors, threads int }

func (f footprint) String() string {
	return fmt.Sprintf("%d KiB of memory, %d descriptors, %d threads", f.memory>>10, f.descriptors, f.threads)
}

// footprint waits until at most want descriptors are open, since connections may still be closing. If want is 0, it returns
// the least number that it sees: just after its start the daemon closes one or two more.
func (d *program) footprint(t *testing.T, want int) footprint {
	t.Helper()
	f := footprint{descriptors: d.place.descriptors(t, d.PID())}
	for limit := time.Now().Add(testkit.Patience / 4); want > 0 && f.descriptors > want && time.Now().Before(limit); {
		<-time.After(10 * time.Millisecond)
		f.descriptors = d.place.descriptors(t, d.PID())
	}
	for i := 0; i < 20 && want == 0; i++ {
		<-time.After(10 * time.Millisecond)
		f.descriptors = min(f.descriptors, d.place.descriptors(t, d.PID()))
	}
	f.memory, f.threads = d.status(t, "RssAnon:")<<10, d.status(t, "Threads:")
	return f
}

// sockets counts the sockets that the daemon has open.
func (d *program) sockets(t *testing.T) (n int) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd/", d.PID())
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Skip("needs /proc") // not Linux
	}
	for _, entry := range entries {
		if target, _ := os.Readlink(dir + entry.Name()); strings.HasPrefix(target, "socket:") {
			n++
		}
	}
	return n
}

// status reads a number from /proc/<pid>/status.
func (d *program) status(t *testing.T, name string) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.PID()))
	testkit.Must(t, err)
	_, rest, _ := strings.Cut(string(text), "\n"+name)
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		t.Fatalf("no %s in /proc/<pid>/status", name)
	}
	n, err := strconv.Atoi(fields[0])
	testkit.Must(t, err)
	return n
}
