package kernel_test

import (
	"fmt"
	"testing"

	"github.com/promptware-os/pwos/schema"
)

// codes are the names of a class of failures in the dialects.
type codes map[schema.Dialect]any

// TestKeyInEitherDialect sends a command with a key in one dialect, and again in both, before and after a restart: it ran
// once, and each answer is the first one. With the key, another body is a conflict in either dialect.
func TestKeyInEitherDialect(t *testing.T) {
	t.Parallel()
	conflict := codes{schema.OsMessage: 409.0, schema.OsEvent: "CONFLICT"}
	for _, dialect := range dialects() {
		t.Run(dialect.String(), func(t *testing.T) {
			t.Parallel()
			d := start(t)
			c := d.dialOn(t, "events.sock")
			const key, call, data = `,"idempotencyKey":"k"`, "Syscall.Spawn", `{"child_agent_id":"once"}`
			first := c.speak(dialect, call, data, key)
			if first.Kind != "reply" {
				t.Fatalf("the first: %s", first.Data)
			}
			for range 2 {
				for _, again := range dialects() {
					if a := c.speak(again, call, data, key); a.Kind != "reply" || string(a.Data) != string(first.Data) {
						t.Errorf("again as an %s: %s, first %s", again, a.Data, first.Data)
					}
				}
				for _, again := range dialects() {
					if f := c.failure(c.speak(again, call, `{"child_agent_id":"other"}`, key)); f.Code != conflict[again] {
						t.Errorf("another body as an %s: %+v", again, f)
					}
				}
				var list struct {
					Processes []descriptor `json:"processes"`
				}
				if c.call("Process.List", `{}`, &list); len(list.Processes) != 1 {
					t.Errorf("processes: %+v", list.Processes)
				}
				d.restart(t)
				c = d.dialOn(t, "events.sock")
			}
		})
	}
}

// TestKeyIsItsCallers: two processes, and the operator, use the same key, and each one's command runs.
func TestKeyIsItsCallers(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	a, b := c.spawn(0, `{"allowed_syscalls":["*"]}`), c.spawn(0, `{"allowed_syscalls":["*"]}`)
	for i, pid := range []int64{0, a, b} {
		answer := c.askWith("Memory.Set", fmt.Sprintf(`{"pid":%d,"key":"of/%d","value":1}`, pid, i), `,"idempotencyKey":"same"`)
		if answer.Kind != "reply" {
			t.Errorf("pid %d: %s", pid, answer.Data)
		}
		c.call("Memory.Get", fmt.Sprintf(`{"key":"of/%d"}`, i), nil)
	}
}

// TestKeyOfAQuery uses a key for queries: they run each time, and do not use the key of commands.
func TestKeyOfAQuery(t *testing.T) {
	t.Parallel()
	for _, dialect := range dialects() {
		t.Run(dialect.String(), func(t *testing.T) {
			t.Parallel()
			d := start(t)
			c := d.dial(t)
			const key = `,"idempotencyKey":"k"`
			c.call("Memory.Set", `{"key":"other","value":0}`, nil)
			for i := range 3 {
				c.call("Memory.Set", fmt.Sprintf(`{"key":"a","value":%d}`, i), nil)
				if a := c.speak(dialect, "Memory.Get", `{"key":"a"}`, key); string(a.Data) != fmt.Sprint(i) {
					t.Errorf("query %d: %s %s", i, a.Kind, a.Data)
				}
				if a := c.speak(dialect, "Memory.Get", `{"key":"other"}`, key); string(a.Data) != "0" {
					t.Errorf("another query under the key: %s %s", a.Kind, a.Data)
				}
				d.restart(t)
				c = d.dial(t)
			}
			if a := c.speak(dialect, "Memory.Set", `{"key":"b","value":1}`, key); a.Kind != "reply" {
				t.Errorf("a command under the key of queries: %s", a.Data)
			}
			if a := c.speak(dialect, "Memory.Get", `{"key":"a"}`, key); string(a.Data) != "2" {
				t.Errorf("a query under the key of a command: %s %s", a.Kind, a.Data)
			}
		})
	}
}

// TestKeyOfADenial denies a command: it did not run, and may be tried again with its key when it is allowed.
func TestKeyOfADenial(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.dial(t)
	const key = `,"idempotencyKey":"k"`
	pid := c.spawn(0, `{"allowed_syscalls":["Memory.Get"]}`)
	data := fmt.Sprintf(`{"pid":%d,"key":"a","value":1}`, pid)
	for range 2 {
		if f := c.fault(c.askWith("Memory.Set", data, key)); f.Code != 403 {
			t.Fatalf("denied: %+v", f)
		}
		d.restart(t)
		c = d.dial(t)
	}
	c.call("Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["Memory.*"]}`, pid), nil)
	if a := c.askWith("Memory.Set", data, key); a.Kind != "reply" {
		t.Errorf("once it was allowed: %s", a.Data)
	}
}

// refusals are failures in a domain, which are outcomes of a key.
func refusals() [][2]string {
	return [][2]string{
		{"Memory.Delete", `{"key":"gone"}`},
		{"Syscall.Alloc", `{"pid":1,"resource_id":"gpu","amount":2}`},
		{"Syscall.Release", `{"pid":1,"resource_id":"gpu","amount":2}`},
		{"Syscall.Alloc", `{"resource_id":"cake","amount":2}`},
	}
}

// TestKeyOfAFailure repeats commands that failed, in both dialects, before and after a restart: the answers are the first.
func TestKeyOfAFailure(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.dial(t)
	c.spawn(0, `{"allowed_syscalls":["*"],"resource_quotas":{"gpu":1}}`)
	first := make(map[string]string)
	for range 2 {
		for i, call := range refusals() {
			for _, dialect := range dialects() {
				a := c.speak(dialect, call[0], call[1], fmt.Sprintf(`,"idempotencyKey":"k-%d"`, i))
				name := fmt.Sprintf("%s %s as an %s", call[0], call[1], dialect)
				if was, ok := first[name]; a.Kind != "error" || ok && was != string(a.Data) {
					t.Errorf("%s: %s %s, first %s", name, a.Kind, a.Data, was)
				} else if !ok {
					first[name] = string(a.Data)
				}
			}
		}
		d.restart(t)
		c = d.dial(t)
	}
}
