// Package soak_test checks that very many calls of every kind, with restarts in between, leave no resources in use.
package soak_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel/process"
)

// calls returns how many calls a soak makes: PWOS_LONG=1 makes a million of them.
func calls() int64 {
	return int64(testkit.Rounds(15_000, 15_000, 1_000_000))
}

// noise is how many bytes two readings of the same state may differ by, since buffers and tables grow at random.
const noise = 384 << 10

// mostGrowth is how many bytes of heap a number of calls may leave behind. A leak of leastLeak bytes a call would be more.
// Many calls let tables of names that were used once, such as those of connections, grow as well.
func mostGrowth(calls int64) int64 { return int64(testkit.Rounds(1, 1, 2))*noise + 8*calls }

// leastLeak is how many bytes a call has to leave behind for the test to notice.
func leastLeak() int { return testkit.Rounds(48, 48, 16) }

// shares are the tenths of the calls that each of several kernels makes, one after the other on the same state directory. The
// first is long enough to show a leak of a running kernel; all together show the growth from the journal in the next kernel's
// state, and the leaks of a stopped kernel in its process.
var shares = [...]int64{6, 1, 1, 1, 1}

// TestSoak makes the calls to a kernel in this process. At every reading the agents have brought the kernel to the same
// state, so it checks that goroutines and descriptors are as at the beginning, and that the heap is within the bound.
func TestSoak(t *testing.T) {
	p := newPlace(t)
	empty := p.read(t)
	stop := p.start(t)
	all := crew(t, p)
	fill(t, p)
	stop()
	stop = p.start(t) // what the filling left behind in a running kernel is not the subject
	live(t, p, process.Recent)
	work(t, all, calls()/10)
	p.indexing(t)
	first := settle(t, p, all, p.read(t))
	t.Logf("in the beginning: %v", first)

	begin, from, until := time.Now(), made(all), made(all)
	last := first
	for i, share := range shares {
		if i > 0 {
			stop()
			bare := p.quiet(t, empty)
			again := time.Now()
			stop = p.start(t)
			t.Logf("started again in %v; heap without a kernel: %d KiB", time.Since(again), bare.heap>>10)
		}
		until += share * calls() / 10
		work(t, all, until)
		last = settle(t, p, all, first)
		// A leak stays; memory that a busy machine has not released yet does not.
		for end := time.Now().Add(testkit.Patience); last.heap-first.heap > mostGrowth(made(all)-from) && time.Now().Before(end); {
			last = p.quiet(t, first)
		}
		t.Logf("after %d calls: %v", made(all)-from, last)
		bounded(t, first, last, made(all)-from)
	}
	t.Logf("%d calls in %v; journal of %s", made(all)-from, time.Since(begin), p.verify(t))
	leak(t, p, last, made(all)-from)
	stop()
	p.quiet(t, empty)
}

// bounded compares two readings of kernels with the same state.
func bounded(t *testing.T, before, after reading, calls int64) {
	t.Helper()
	if grown := after.heap - before.heap; grown > mostGrowth(calls) {
		t.Errorf("the heap grew by %d bytes in %d calls, want at most %d", grown, calls, mostGrowth(calls))
	}
	if after.goroutines != before.goroutines || after.descriptors != before.descriptors {
		t.Errorf("%v, then %v", before, after)
	}
}

// leak keeps leastLeak bytes a call, to check that the bound detects that.
func leak(t *testing.T, p *place, before reading, calls int64) {
	t.Helper()
	kept := make([][]byte, 0, calls)
	room := p.read(t).heap - before.heap // for the slice, which is no part of the leak
	for range calls {
		kept = append(kept, make([]byte, leastLeak()))
	}
	if grown := p.read(t).heap - room - before.heap; grown <= mostGrowth(calls) {
		t.Errorf("a leak of %d bytes a call makes the heap grow by %d bytes only: the bound of %d does not notice", leastLeak(), grown, mostGrowth(calls))
	}
	runtime.KeepAlive(kept)
}

func crew(t *testing.T, p *place) []*agent {
	t.Helper()
	all, err := enlist(p, new(atomic.Int64))
	testkit.Must(t, err)
	return all
}

func made(all []*agent) int64 { return all[0].calls.Load() }

// work lets all agents make calls up to that number.
func work(t *testing.T, all []*agent, until int64) {
	t.Helper()
	each(t, all, func(a *agent) error { return a.work(until) })
}

// settle brings the kernel to its initial state, and takes a reading when no connection is left.
func settle(t *testing.T, p *place, all []*agent, before reading) reading {
	t.Helper()
	each(t, all, (*agent).settle)
	return p.quiet(t, before)
}

// each runs do for all agents concurrently.
func each(t *testing.T, all []*agent, do func(*agent) error) {
	t.Helper()
	var busy sync.WaitGroup
	for _, a := range all {
		busy.Go(func() {
			if err := do(a); err != nil {
				t.Error(err)
			}
		})
	}
	if busy.Wait(); t.Failed() {
		t.FailNow()
	}
}
