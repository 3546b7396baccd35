package soak_test

import (
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestBurst makes calls on many connections at once, closes them, and checks that no resources of them are left.
func TestBurst(t *testing.T) {
	connections, bursts := 300, testkit.Rounds(3, 3, 5)
	p := newPlace(t)
	p.start(t)
	all := crew(t, p)
	idle := p.quiet(t, p.read(t))
	for range bursts {
		var open []*conn
		for range connections {
			c, err := p.dial()
			testkit.Must(t, err)
			open = append(open, c)
		}
		for i, c := range open {
			testkit.Must(t, all[i%agents].talk(c))
			for range 20 {
				c.ask(0, "Memory.Set", `{"key":"burst","value":1}`)
				c.ask(0, "Syscall.Ping", `{"payload":1}`)
			}
			testkit.Must(t, c.push())
		}
		for _, c := range open {
			testkit.Must(t, c.end(flushed(c)))
		}
	}
	now := p.quiet(t, idle)
	t.Logf("before: %v\nafter %d times %d connections at once: %v", idle, bursts, connections, now)
	if now.goroutines > idle.goroutines {
		t.Errorf("%d goroutines, %d before", now.goroutines, idle.goroutines)
	}
}
