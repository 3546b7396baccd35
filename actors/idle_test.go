package actors_test

import (
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/promptware-os/pwos/schema"
)

// TestIdleConnection measures the memory of a connection that was served and is idle: heap and stacks, including its
// in-memory link and client. It does not run in parallel, since the figures are those of the process. Connections are
// opened a few at a time, since the room that a large burst leaves in queues belongs to none of them.
func TestIdleConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const conns, few = 5000, 50
		const bound = 20 << 10 // bytes each
		s := start(t, newFake())
		s.connect().send(ping("first", "1"))
		synctest.Wait()
		before, running := inUse(), runtime.NumGoroutine()
		for range conns / few {
			for range few {
				c := s.serve(newLink(schema.OsMessage, schema.MaxLine, unbounded))
				c.send(ping("a", "1"), echo("b", "2"), "no JSON")
			}
			synctest.Wait()
			for _, c := range s.clients[len(s.clients)-few:] {
				if got := strings.Count(string(c.link.out.drain()), "\n"); got != 3 {
					t.Fatalf("%d answers, want 3", got)
				}
			}
		}
		each := (inUse() - before) / conns
		goroutines := runtime.NumGoroutine() - running
		t.Logf("%d idle connections: %d bytes each, and %d goroutines", conns, each, goroutines)
		if each > bound {
			t.Errorf("an idle connection holds %d bytes, want at most %d", each, bound)
		}
		if goroutines > few {
			t.Errorf("%d idle connections hold %d goroutines, want none", conns, goroutines)
		}
		s.endCleanly()
	})
}

// inUse returns the memory in use after garbage collection; pools are emptied in the second round.
func inUse() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
