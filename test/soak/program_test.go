package soak_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// program is the real daemon.
type program struct {
	*testkit.Process
	place *place
}

// launch starts the real daemon on the state there is, and waits until clients may connect.
func (p *place) launch(t *testing.T) *program {
	t.Helper()
	d := testkit.Daemon{Command: []string{pwosd}, Dir: p.dir}
	return &program{d.Start(t), p}
}

// footprint is what the operating system says that the daemon takes.
type footprint struct{ memory, descriptors, threads int }

func (f footprint) String() string {
	return fmt.Sprintf("%d KiB of memory, %d descriptors, %d threads", f.memory>>10, f.descriptors, f.threads)
}

// footprint waits until no more descriptors are open than wanted, those of connections that are closing. Where want is 0 it
// takes the fewest that it sees: just after its start the daemon closes one or two more.
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
