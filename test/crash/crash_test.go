// Package crash_test checks what the real daemon has acknowledged when it is killed under writing clients.
package crash_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
)

const (
	clients = 16
)

// TestKill kills the daemon at random moments, also during its start. PWOS_LONG=1 does it 1,000 times.
func TestKill(t *testing.T) {
	t.Parallel()
	for i := range testkit.Rounds(1, 1, 50) {
		t.Run(fmt.Sprint("journal", i), func(t *testing.T) { chapter(t, uint64(i)) })
	}
}

// chapter runs the starts of one journal.
func chapter(t *testing.T, seed uint64) {
	chance := rand.New(rand.NewPCG(seed, 3))
	p := newPlace(t)
	d := daemonAt(t, p).Start(t)
	t.Cleanup(func() { d.Kill(t) })
	writers := spawnWriters(t, p)
	rounds := testkit.Rounds(6, 10, 20)
	for round := range rounds {
		inStart := chance.IntN(4) == 0
		if !inStart {
			load(t, writers, func() { wait(time.Duration(chance.Int64N(int64(250 * time.Millisecond)))); d.Kill(t) })
		} else {
			d.Kill(t)
			d = daemonAt(t, p).Launch(t)
			wait(time.Duration(chance.Int64N(int64(30 * time.Millisecond))))
			d.Kill(t)
		}
		verify(t, p, round)
		d = daemonAt(t, p).Start(t)
		each(t, writers, (*writer).check)
		distinct(t, writers)
		if t.Failed() {
			d.Kill(t) // its output is complete then
			t.Fatalf("round %d, seed %d: the daemon's output:\n%.4000s", round, seed, d.Output())
		}
	}
	total := 0
	for _, w := range writers {
		total += w.acked
	}
	t.Logf("%d kills, %d commands", rounds, total)
	if total < rounds*clients {
		t.Errorf("only %d commands: too few for the kills to show anything", total)
	}
}

// wait waits for a random time: the moment of the kill is the test's input.
func wait(d time.Duration) { <-time.After(d) }

func spawnWriters(t *testing.T, p *testkit.Place) []*writer {
	t.Helper()
	c, err := dial(p)
	testkit.Must(t, err)
	defer c.end(nil)
	writers := make([]*writer, clients)
	for i := range writers {
		var out struct {
			ChildPID int64 `json:"child_pid"`
		}
		data := fmt.Sprintf(`{"child_agent_id":"writer-%d","capabilities":{"allowed_syscalls":["*"],"resource_quotas":{"gpu":1000000000}}}`, i)
		testkit.Must(t, c.call("command", "Syscall.Spawn", data, &out))
		writers[i] = &writer{place: p, pid: out.ChildPID, ids: make(map[int64]int)}
	}
	return writers
}

// load makes all writers write until the kernel has ended.
func load(t *testing.T, writers []*writer, kill func()) {
	t.Helper()
	var killed sync.WaitGroup
	killed.Go(kill)
	each(t, writers, (*writer).write)
	killed.Wait()
}

// each runs do for all writers concurrently.
func each(t *testing.T, writers []*writer, do func(*writer) error) {
	t.Helper()
	var all sync.WaitGroup
	for _, w := range writers {
		all.Go(func() {
			if err := do(w); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// verify checks the journal after the kill.
func verify(t *testing.T, p *testkit.Place, round int) {
	t.Helper()
	report, err := journal.Verify(t.Context(), nil, p.Path("s/journal"), journal.VerifyOptions{})
	if err != nil {
		t.Fatalf("round %d: %v", round, err)
	}
	for _, f := range report.Findings {
		t.Errorf("round %d: %v", round, f)
	}
}

// distinct checks that all messages of all senders have different ids.
func distinct(t *testing.T, writers []*writer) {
	t.Helper()
	owner := make(map[int64]int64)
	for _, w := range writers {
		for id := range w.ids {
			if other, ok := owner[id]; ok {
				t.Errorf("message id %d: of pid %d and of pid %d", id, other, w.pid)
			}
			owner[id] = w.pid
		}
	}
}
