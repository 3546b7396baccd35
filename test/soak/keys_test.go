package soak_test

import (
	"fmt"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestKeyAfterRestart repeats a command with an idempotency key after a restart that read more than fits a buffer, and checks
// that the answer is the first one.
func TestKeyAfterRestart(t *testing.T) {
	beside(t)
	p := newPlace(t)
	d := p.launch(t)
	c, err := p.dial()
	testkit.Must(t, err)
	const key = `,"idempotencyKey":"the only"`
	want := ""
	for i := range 100 {
		for j := range 50 {
			c.ask(0, "Memory.Set", fmt.Sprintf(`{"key":"k","value":%d}`, j))
		}
		if i == 50 { // with as much before it as after it
			c.askWith(0, "Syscall.Spawn", `{"child_agent_id":"once"}`, key)
		}
		answer, err := c.flush()
		testkit.Must(t, err)
		if i == 50 {
			want = string(answer)
		}
	}
	testkit.Must(t, c.end(nil))
	d.Stop(t)
	d = p.launch(t)
	if c, err = p.dial(); err != nil {
		t.Fatal(err)
	}
	defer c.end(nil)
	c.askWith(0, "Syscall.Spawn", `{"child_agent_id":"once"}`, key)
	again, err := c.flush()
	d.Kill(t) // what it says is read below
	if err != nil || string(again) != want {
		t.Errorf("again: %s, %v; first %s\n%.600s", again, err, want, d.Output())
	}
}
