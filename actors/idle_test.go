package actors_test

import (
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/promptware-os/pwos/schema"
)

// TestIdleConnection measures what a connection holds that was served and waits: heap and stacks, its in-memory link and
// client included. It runs beside no other test, since the figures are the process's. Connections come a few at a time:
// the room that a large burst leaves behind in queues belongs to none of them.
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

// inUse is what the process holds when the collector has done its work; pools let go in its second round.
func inUse() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
