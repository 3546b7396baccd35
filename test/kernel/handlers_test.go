package kernel_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/schema"
)

// coding returns the data of a registration with code.
func coding(name, source string) string {
	return fmt.Sprintf(`{"name":%q,"kind":"query","input":{"type":"object"},"output":{"type":["object","string"]},"code":%q}`, name, source)
}

const adds = "export function handler(input: { a: number; b: number }) { return { sum: input.a + input.b } }"

// TestRegisterCode: a syscall with code is granted, called, checked and journaled like other registered syscalls, in either
// dialect, and needs no new registration after a restart.
func TestRegisterCode(t *testing.T) {
	t.Parallel()
	for _, dialect := range dialects() {
		t.Run(dialect.String(), func(t *testing.T) {
			t.Parallel()
			d := start(t)
			operator := d.dial(t)
			agent, pid := d.attached(t, "a")
			agent.refused(403, "Syscall.Register", coding("Sum.Add", adds), "Syscall.Register")
			operator.call("Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["Syscall.Register"]}`, pid), nil)
			data := coding("Sum.Add", adds)
			if dialect == schema.OsEvent {
				data = strings.NewReplacer(`"kind":`, `"type":`, `"input":`, `"inputSchema":`, `"output":`, `"outputSchema":`).Replace(data)
			}
			if a := agent.speak(dialect, "Syscall.Register", data, ""); a.Kind != "reply" || !strings.Contains(string(a.Data), `"introspection":{"name":"Sum.Add"`) {
				t.Fatalf("%s", a.Data)
			}
			operator.call("Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["Sum.Add"]}`, pid), nil)
			for range 2 {
				if a := agent.use(dialect, "Sum.Add", `{"a":1,"b":2.5}`); a.Kind != "reply" || string(a.Data) != `{"sum":3.5}` || a.Metadata.Kernel.PID != pid {
					t.Errorf("%s, proof %+v", a.Data, a.Metadata.Kernel)
				}
				invalid := codes{schema.OsMessage: 422.0, schema.OsEvent: "INVALID_INPUT"}[dialect]
				if f := agent.failure(agent.use(dialect, "Sum.Add", `[]`)); f.Code != invalid {
					t.Errorf("what does not fit the schema: %+v", f)
				}
				d.restart(t)
				agent, _ = d.attached(t, "a")
			}
			if a := d.dial(t).call("Audit.Log", fmt.Sprintf(`{"pid":%d}`, pid), nil); strings.Count(string(a.Data), `"type":"Sum.Add"`) != 4 {
				t.Errorf("journaled: %s", a.Data)
			}
		})
	}
}

// TestRegisterBadCode: invalid handlers are refused, with the place of the error, and change nothing.
func TestRegisterBadCode(t *testing.T) {
	t.Parallel()
	c := start(t).dialOn(t, "events.sock")
	c.refused(422, "Syscall.Register", coding("Sum.Add", "export const handler = ("), "line 1, column 25")
	c.refused(422, "Syscall.Register", coding("Sum.Add", "import fs from 'fs'\nexport const handler = () => fs"), "line 1, column 16: nothing can be imported")
	c.refused(422, "Syscall.Register", coding("Sum.Add", "export default () => 1"), "exports a default, and no handler")
	c.refused(422, "Syscall.Register", coding("Sum.Add", strings.Repeat(" ", 65537)), "code")
	c.refused(422, "Syscall.Register", strings.Replace(coding("Sum.Add", adds), `"code"`, `"provider":"connection","code"`, 1), "one of the three")
	c.refused(422, "Syscall.Register", strings.Replace(coding("Sum.Add", adds), `"code"`, `"path":"os/a","code"`, 1), "one of the three")
	c.refused(404, "Syscall.Unregister", `{"name":"Sum.Add"}`)
	long := adds + strings.Repeat(" ", 65536-len(adds))
	c.call("Syscall.Register", coding("Sum.Add", long), nil)
	c.refused(409, "Syscall.Register", coding("Sum.Add", adds), "something else")
	c.call("Syscall.Register", coding("Sum.Add", long), nil)
	for i := range 127 {
		c.call("Syscall.Register", coding(fmt.Sprintf("Sum.N%d", i), long), nil)
	}
	c.refused(429, "Syscall.Register", coding("Sum.More", adds), "8388608 bytes")
}

// TestHandlers: a handler that misbehaves fails only its own callers; 64 callers of another one are answered meanwhile.
func TestHandlers(t *testing.T) {
	t.Parallel()
	d := start(t, func(cfg *config.Config) { cfg.Code.Time = config.Duration(3 * time.Second) })
	c := d.dial(t)
	c.call("Syscall.Register", coding("Sum.Add", adds), nil)
	for name, x := range map[string]struct {
		body string
		code float64
		text string
	}{
		"Bad.Throws":    {`throw new RangeError("no such card")`, 502, "RangeError: no such card"},
		"Bad.Allocates": {`return { n: new ArrayBuffer(2 ** 30).byteLength }`, 502, "memory"},
		"Bad.Number":    {"return 1", 502, "output schema"},
		"Bad.Undefined": {"return undefined", 502, "undefined"},
	} {
		c.call("Syscall.Register", coding(name, "export const handler = () => {"+x.body+"}"), nil)
		if f := c.failure(c.use(schema.OsMessage, name, `{}`)); f.Code != x.code || !strings.Contains(f.Message, x.text) {
			t.Errorf("%s: %+v, want %v %s", name, f, x.code, x.text)
		}
	}
	c.call("Syscall.Register", coding("Bad.Loops", "export const handler = () => { for (;;) {} }"), nil)
	agent, pid := d.attached(t, "a")
	c.call("Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["Bad.Loops"]}`, pid), nil)
	var all sync.WaitGroup
	all.Go(func() {
		if f := agent.failure(agent.use(schema.OsMessage, "Bad.Loops", `{}`)); f.Code != 504.0 || !strings.Contains(f.Message, "it may take 3s") {
			t.Errorf("Bad.Loops: %+v", f)
		}
	})
	for i := range 64 {
		one := d.dial(t)
		all.Go(func() {
			for range 4 {
				if a := one.use(schema.OsMessage, "Sum.Add", fmt.Sprintf(`{"a":%d,"b":1}`, i)); string(a.Data) != fmt.Sprintf(`{"sum":%d}`, i+1) {
					t.Errorf("caller %d: %s", i, a.Data)
				}
			}
		})
	}
	all.Wait()
}

// BenchmarkHandler calls code that has been called before, compared with a Ping and an Echo, which is journaled too.
func BenchmarkHandler(b *testing.B) {
	c := start(b).dial(b)
	c.call("Syscall.Register", coding("Sum.Add", adds), nil)
	for name, use := range map[string]func() answer{
		"Ping": func() answer { return c.call("Syscall.Ping", `{"payload":1}`, nil) },
		"Echo": func() answer { return c.call("Syscall.Echo", `{"message":"m"}`, nil) },
		"Code": func() answer { return c.use(schema.OsMessage, "Sum.Add", `{"a":1,"b":2}`) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if a := use(); a.Kind != "reply" {
					b.Fatalf("%s", a.Data)
				}
			}
		})
	}
}
