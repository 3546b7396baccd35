package soak_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// reading is this process's use of resources.
type reading struct {
	heap        int64 // bytes in use, without what the actor library's table takes
	goroutines  int
	descriptors int
}

func (r reading) String() string {
	return fmt.Sprintf("heap %d KiB, %d goroutines, %d descriptors", r.heap>>10, r.goroutines, r.descriptors)
}

// read takes a reading. Its heap is the least of a few, without garbage and without a block of entries that is just being
// indexed.
func (p *place) read(t *testing.T) reading {
	t.Helper()
	least := int64(math.MaxInt64)
	for i := range 5 {
		if i > 0 {
			<-time.After(10 * time.Millisecond)
		}
		for range 3 { // the content of a pool survives the first two
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		least = min(least, int64(m.HeapAlloc))
	}
	return reading{least - table(p.connections.Load()), runtime.NumGoroutine(), p.descriptors(t, os.Getpid())}
}

// table is how many bytes the actor library's table of names takes after that many connections, for each of which there is an
// actor. It consists of so many small maps that most connections are the first in one; a map keeps its memory when
// the name is removed. So the table grows with the connections at first, and never beyond the memory of all maps, 9.4 MB.
func table(connections int64) int64 {
	const maps, room = 1024 * 32, 288
	return int64(maps * room * (1 - math.Exp(-float64(connections)/maps)))
}

// mostFiles is how many descriptors a kernel has below its state directory at most. The present number depends on the
// index: it has one of the journal while it reads, and some of the projections for each query.
const mostFiles = 20

// descriptors counts the open files of a process, except for those below the state directory, which only have a bound.
func (p *place) descriptors(t *testing.T, pid int) int {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Skip("needs /proc") // not Linux
	}
	files := 0
	for _, entry := range entries {
		target, _ := os.Readlink(filepath.Join(dir, entry.Name())) // one that was just closed counts as before
		if strings.HasPrefix(target, p.Path("s")+"/") {
			files++
		}
	}
	if files > mostFiles {
		t.Errorf("%d descriptors below the state directory, want at most %d", files, mostFiles)
	}
	return len(entries) - files
}

// quiet waits until the goroutines and descriptors of connections that were just closed are gone, that is, until there are
// no more than in an earlier reading. It returns the last reading.
func (p *place) quiet(t *testing.T, before reading) reading {
	t.Helper()
	now := p.read(t)
	for limit := time.Now().Add(testkit.Patience / 4); now.goroutines > before.goroutines || now.descriptors > before.descriptors; now = p.read(t) {
		if time.Now().After(limit) {
			t.Errorf("%v, want no more goroutines or descriptors than in %v", now, before)
			return now
		}
		<-time.After(10 * time.Millisecond)
	}
	return now
}

// indexing waits until the running kernel's index has a block of entries, and so has allocated the buffers that it reads
// with. Its write-ahead log is empty until then.
func (p *place) indexing(t *testing.T) {
	t.Helper()
	for limit := time.Now().Add(testkit.Patience); ; <-time.After(10 * time.Millisecond) {
		info, err := os.Stat(p.Path("s/projections/search.db-wal"))
		testkit.Must(t, err)
		if info.Size() > 0 {
			return
		}
		if time.Now().After(limit) {
			t.Fatal("the index has indexed no entry")
		}
	}
}
