package soak_test

import (
	"testing"
)

// TestBurst opens many connections, has all of them make calls at once, and hangs up. Nothing of them stays.
func TestBurst(t *testing.T) {
	const connections, bursts = 300, 5
	p := newPlace(t)
	d := p.start(t)
	t.Cleanup(func() { d.stop(t) })
	all := crew(t, p)
	idle := p.quiet(t, p.read(t))
	for range bursts {
		var open []*conn
		for range connections {
			c, err := p.dial()
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, c)
		}
		for i, c := range open {
			if err := all[i%agents].talk(c); err != nil {
				t.Fatal(err)
			}
			for range 20 {
				c.ask(0, "Memory.Set", `{"key":"burst","value":1}`)
				c.ask(0, "Syscall.Ping", `{"payload":1}`)
			}
			if err := c.push(); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range open {
			if err := c.end(flushed(c)); err != nil {
				t.Fatal(err)
			}
		}
	}
	now := p.quiet(t, idle)
	t.Logf("before: %v\nafter %d times %d connections at once: %v", idle, bursts, connections, now)
	if now.goroutines > idle.goroutines {
		t.Errorf("%d goroutines, %d before", now.goroutines, idle.goroutines)
	}
}
