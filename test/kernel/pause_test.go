package kernel_test

import (
	"fmt"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// TestPausedCallsWait: the calls of a paused agent wait, in order, and are made when it continues, in either dialect,
// including subscriptions. Other agents continue meanwhile, and so do the operator's calls as that agent.
func TestPausedCallsWait(t *testing.T) {
	t.Parallel()
	for _, dialect := range dialects() {
		t.Run(dialect.String(), func(t *testing.T) {
			t.Parallel()
			d := start(t)
			operator, c, second, other := d.dial(t), d.dial(t), d.dial(t), d.dial(t)
			const may = `,"capabilities":{"allowed_syscalls":["Memory.*","Ipc.*","SYS_SPAWN"]}`
			c.attach("a", may)
			second.attach("a", may)
			other.attach("b", may)
			second.speak(dialect, "Ipc.Subscribe", `{}`, "")
			child := c.spawn(1, `{"allowed_syscalls":["Memory.*"]}`)
			operator.call("Process.Pause", `{"target_pid":1}`, nil)
			var ids []string
			for i := range 40 {
				ids = append(ids, c.send("Memory.Set", fmt.Sprintf(`{"key":"k","value":%d}`, i), ""))
				if i%4 == 0 {
					ids = append(ids, c.send("Ipc.Receive", `{}`, ""))
				}
			}
			operator.call("Syscall.SendMsg", `{"receiver_pid":1,"payload":7}`, nil)
			for i := range 10 {
				other.call("Memory.Set", fmt.Sprintf(`{"key":"other","value":%d}`, i), nil)
			}
			if a := operator.ask("Memory.Get", `{"key":"k"}`); a.Kind != "error" {
				t.Errorf("a paused agent has set %s", a.Data)
			}
			operator.call("Memory.Set", fmt.Sprintf(`{"pid":%d,"key":"as","value":1}`, child), nil)
			var out schema.PauseOutput
			operator.call("Process.Pause", `{"all":true}`, &out)
			if out.Processes != 1 { // b
				t.Errorf("%d more are paused", out.Processes)
			}
			operator.call("Process.Resume", `{"all":true}`, &out)
			if out.Processes != 3 {
				t.Errorf("%d go on", out.Processes)
			}
			for _, id := range ids {
				if a := c.next(); a.Kind != "reply" || a.Metadata.Causation != id {
					t.Fatalf("%s to %s, want a reply to %s", a.Data, a.Metadata.Causation, id)
				}
			}
			if a := operator.ask("Memory.Get", `{"key":"k"}`); string(a.Data) != "39" {
				t.Errorf("the agent has set %s last", a.Data)
			}
			second.letter(dialect)
		})
	}
}

// TestPausedConnectionEnds: waiting calls of a connection that ends are not made. Nor are those that wait when the kernel
// ends, and the agent stays paused.
func TestPausedConnectionEnds(t *testing.T) {
	t.Parallel()
	d := start(t)
	operator, c, second := d.dial(t), d.dial(t), d.dial(t)
	const may = `,"capabilities":{"allowed_syscalls":["Memory.*"]}`
	c.attach("a", may)
	second.attach("a", may)
	operator.call("Process.Pause", `{"target_pid":1}`, nil)
	c.send("Memory.Set", `{"key":"gone","value":1}`, "")
	testkit.Must(t, c.conn.Close())
	second.send("Memory.Set", `{"key":"waits","value":1}`, "")
	d.restart(t)
	operator, c = d.dial(t), d.dial(t)
	c.ask("Process.Attach", `{"agent_id":"a"}`) // and no other call, which would wait
	sent := c.send("Memory.Set", `{"key":"later","value":1}`, "")
	operator.call("Process.Resume", `{"target_pid":1}`, nil)
	if a := c.next(); a.Kind != "reply" || a.Metadata.Causation != sent {
		t.Errorf("%s", a.Data)
	}
	for _, key := range []string{"gone", "waits"} {
		if a := operator.ask("Memory.Get", `{"key":"`+key+`"}`); a.Kind != "error" {
			t.Errorf("%s is set to %s", key, a.Data)
		}
	}
	for _, data := range []string{`{}`, `{"all":true,"target_pid":1}`, `{"target_pid":0}`, `{"target_pid":"1"}`} {
		if f := operator.failure(operator.ask("Process.Pause", data)); f.Code != 400.0 && f.Code != 422.0 {
			t.Errorf("%s: %+v", data, f)
		}
	}
	if f := c.failure(c.ask("Process.Pause", `{"all":true}`)); f.Code != 403.0 {
		t.Errorf("an agent pauses all: %+v", f)
	}
}
