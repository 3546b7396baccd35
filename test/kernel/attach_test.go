package kernel_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// attached returns a connection that has become the named process.
func (d *running) attached(t *testing.T, name string) (*client, int64) {
	t.Helper()
	c := d.dial(t)
	return c, c.attach(name, "")
}

// attach attaches a connection, and returns the PID.
func (c *client) attach(name, more string) int64 {
	c.t.Helper()
	var out struct {
		PID int64 `json:"pid"`
	}
	c.call("Process.Attach", fmt.Sprintf(`{"agent_id":%q%s}`, name, more), &out)
	return out.PID
}

// TestAttach: a connection becomes a process, whose state outlives the connection and the daemon.
func TestAttach(t *testing.T) {
	t.Parallel()
	for _, dialect := range dialects() {
		t.Run(dialect.String(), func(t *testing.T) {
			t.Parallel()
			d := start(t)
			operator, c := d.dial(t), d.dial(t)
			const may = `,"capabilities":{"allowed_syscalls":["Memory.*","Ipc.*","SYS_ALLOC"],"resource_quotas":{"gpu":2}}`
			if a := c.speak(dialect, "Process.Attach", `{"agent_id":"bridge"`+may+`}`, ""); a.Kind != "reply" || a.Metadata.Kernel.PID != 0 {
				t.Fatalf("%s, proof %+v", a.Data, a.Metadata.Kernel)
			}
			denied := codes{schema.OsMessage: 403.0, schema.OsEvent: "UNAUTHORIZED"}[dialect]
			for typ, data := range map[string]string{
				"Memory.Get": `{"pid":0,"key":"a"}`, "Clock.Get": `{}`, "Syscall.Shutdown": `{}`,
				"Process.Attach": `{"agent_id":"other"}`, // an attached connection cannot change again
			} {
				if f := c.failure(c.speak(dialect, typ, data, "")); f.Code != denied {
					t.Errorf("%s: %+v", typ, f)
				}
			}
			if a := c.speak(dialect, "Memory.Set", `{"key":"a","value":1}`, ""); a.Kind != "reply" || a.Metadata.Kernel.PID != 1 {
				t.Errorf("%s, proof %+v", a.Data, a.Metadata.Kernel)
			}
			c.speak(dialect, "Syscall.Alloc", `{"resource_id":"gpu","amount":2}`, "")
			operator.call("Syscall.SendMsg", `{"receiver_pid":1,"payload":"for the bridge"}`, nil)
			testkit.Must(t, c.conn.Close())

			d.restart(t)
			c = d.dial(t)
			if a := c.speak(dialect, "Process.Attach", `{"agent_id":"bridge"`+may+`}`, ""); !strings.Contains(string(a.Data), `"pid":1,`) {
				t.Fatalf("found again: %s", a.Data)
			}
			if a := c.speak(dialect, "Ipc.Receive", `{}`, ""); !strings.Contains(string(a.Data), "for the bridge") {
				t.Errorf("mail: %s", a.Data)
			}
			if f := c.failure(c.speak(dialect, "Syscall.Alloc", `{"resource_id":"gpu","amount":1}`, "")); !strings.Contains(f.Message, "gpu") {
				t.Errorf("beyond what it holds: %+v", f)
			}
			operator = d.dial(t)
			conflict := codes{schema.OsMessage: 409.0, schema.OsEvent: "CONFLICT"}[dialect]
			f := operator.failure(operator.speak(dialect, "Process.Attach", `{"agent_id":"bridge","capabilities":{"allowed_syscalls":["*"]}}`, ""))
			if f.Code != conflict {
				t.Errorf("with other capabilities: %+v", f)
			}
			if a := operator.call("Clock.Get", `{}`, nil); a.Metadata.Kernel.PID != 0 {
				t.Errorf("after a refused attach the connection is pid %d", a.Metadata.Kernel.PID)
			}
			operator.call("Syscall.Terminate", `{"target_pid":1}`, nil)
			gone := codes{schema.OsMessage: 410.0, schema.OsEvent: "CONFLICT"}[dialect]
			if f := c.failure(c.speak(dialect, "Memory.Get", `{"key":"a"}`, "")); f.Code != gone {
				t.Errorf("after its end: %+v", f)
			}
			if a := operator.speak(dialect, "Process.Attach", `{"agent_id":"bridge"}`, ""); !strings.Contains(string(a.Data), `"pid":2,`) {
				t.Errorf("the name of one that has ended: %s", a.Data)
			}
		})
	}
}

// TestAttachInABurst: frames before an attach are the operator's and later ones the process's, including a line that is
// decoded on a goroutine and one that is never answered.
func TestAttachInABurst(t *testing.T) {
	t.Parallel()
	c := start(t).dialOn(t, "events.sock")
	frames := func(typ, data string, n int) string {
		return strings.Repeat(fmt.Sprintf(`{"kind":"command","type":%q,"data":%s,"metadata":{"id":"i","timestamp":1}}`+"\n", typ, data), n)
	}
	long := `{"message":"` + strings.Repeat("x", 100<<10) + `"}`
	echo := `{"message":"m"}`
	text := frames("Syscall.Echo", echo, 100) + frames("Syscall.Echo", long, 1) + frames("Process.Attach", `{"agent_id":"a"}`, 1) +
		frames("Syscall.Echo", long, 1) + frames("Syscall.Echo", echo, 300) + frames("Process.Attach", `{"agent_id":"b"}`, 2)
	go func() {
		_, _ = c.conn.Write([]byte(text)) // if it fails, the answers fail
	}()
	for i := range 405 {
		a := c.next()
		want := int64(0)
		if i > 101 {
			want = 1
		}
		if k := a.Metadata.Kernel; k == nil || k.PID != want {
			t.Fatalf("answer %d: %.200s, proof %+v, want pid %d", i, a.Data, k, want)
		}
		if refused := i > 402; (a.Kind == "error") != refused {
			t.Errorf("answer %d: %.200s", i, a.Data)
		}
	}
	c.halfClose()
	if rest := c.over(); len(rest) > 0 {
		t.Errorf("then %v", rest)
	}
}

// TestAttachThenEnd: a peer that ends its side after an attach still gets its answers.
func TestAttachThenEnd(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	c.send("Process.Attach", `{"agent_id":"a"}`, "")
	c.send("Syscall.Ping", `{"payload":1}`, "")
	c.halfClose()
	rest := c.over()
	if len(rest) != 2 || rest[0].Metadata.Kernel.PID != 0 || rest[1].Metadata.Kernel.PID != 1 {
		t.Errorf("got %+v", rest)
	}
}

// TestAttachAtOnce: many connections that attach concurrently with one name are one process, which is created once.
func TestAttachAtOnce(t *testing.T) {
	t.Parallel()
	d := start(t)
	var all sync.WaitGroup
	for range 16 {
		c := d.dial(t)
		all.Go(func() {
			if a := c.ask("Process.Attach", `{"agent_id":"a"}`); !strings.Contains(string(a.Data), `"pid":1,`) {
				t.Errorf("%s", a.Data)
			}
		})
	}
	all.Wait()
	if a := d.dial(t).call("Process.List", `{}`, nil); strings.Count(string(a.Data), `"pid"`) != 1 {
		t.Errorf("%s", a.Data)
	}
}

// TestAttachAndSubscriptions: a connection with a subscription of the operator, or with its mail, stays the operator's.
func TestAttachAndSubscriptions(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.dial(t)
	c.call("Audit.Subscribe", `{"types":["Memory.Set"]}`, nil)
	c.refused(409, "Process.Attach", `{"agent_id":"a"}`, "subscriptions")
	if a := c.call("Clock.Get", `{}`, nil); a.Metadata.Kernel.PID != 0 {
		t.Errorf("the connection is pid %d", a.Metadata.Kernel.PID)
	}
	c = d.dial(t)
	c.send("Ipc.Subscribe", `{}`, "")
	c.refusedNext(409, c.send("Process.Attach", `{"agent_id":"a"}`, ""))

	// Subscriptions of an attached connection are the process's.
	c, pid := d.attached(t, "a")
	d.dial(t).call("Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["Ipc.*"]}`, pid), nil)
	c.call("Ipc.Subscribe", `{}`, nil)
	d.dial(t).call("Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":7}`, pid), nil)
	if l, _ := c.letter(schema.OsMessage); l.Payload != 7 {
		t.Errorf("pushed %+v", l)
	}
}

// refusedNext reads answers up to the one to the call with the id, which must be an error with the code.
func (c *client) refusedNext(code int, id string) {
	c.t.Helper()
	for {
		a := c.next()
		if a.Metadata.Causation != id {
			continue
		}
		if a.Kind != "error" || !strings.Contains(string(a.Data), fmt.Sprintf(`"code":%d`, code)) {
			c.t.Errorf("%s", a.Data)
		}
		return
	}
}

// TestAttachWithAKey: a repeated attach with an idempotency key attaches the connection that repeats it. Keys of the
// process are separate from the operator's.
func TestAttachWithAKey(t *testing.T) {
	t.Parallel()
	d := start(t)
	const key = `,"idempotencyKey":"k"`
	for i, c := range []*client{d.dial(t), d.dial(t)} {
		if a := c.askWith("Process.Attach", `{"agent_id":"a"}`, key); a.Kind != "reply" {
			t.Fatalf("%s", a.Data)
		}
		a := c.askWith("Syscall.Echo", `{"message":"m"}`, key)
		if a.Kind != "reply" || a.Metadata.Kernel.PID != 1 {
			t.Errorf("connection %d: %s, proof %+v", i, a.Data, a.Metadata.Kernel)
		}
	}
	d.restart(t)
	c := d.dial(t)
	c.askWith("Process.Attach", `{"agent_id":"a"}`, key)
	if a := c.ask("Syscall.Ping", `{"payload":1}`); a.Metadata.Kernel.PID != 1 {
		t.Errorf("after a restart the process is pid %d", a.Metadata.Kernel.PID)
	}
	if a := d.dial(t).askWith("Process.Attach", `{"agent_id":"b"}`, key); a.Kind != "error" {
		t.Errorf("another body: %s", a.Data)
	}
}

// TestAttachedIsBounded: the bounds of an agent apply to a connection that has become one.
func TestAttachedIsBounded(t *testing.T) {
	t.Parallel()
	d := start(t, func(cfg *config.Config) {
		cfg.Agents.JournalBytesPerSecond, cfg.Agents.JournalBurstBytes = 1, 4000
	})
	c, _ := d.attached(t, "a")
	for range 100 {
		if a := c.ask("Syscall.Echo", `{"message":"m"}`); a.Kind == "error" {
			if f := c.failure(a); f.Code != 429.0 {
				t.Errorf("%+v", f)
			}
			return
		}
	}
	t.Error("the call is never refused")
}

// TestAttachBadInput: each is refused, and the connection does not change.
func TestAttachBadInput(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	for data, texts := range map[string]string{
		`{}`:              "agent_id",
		`null`:            "agent_id",
		`{"agent_id":""}`: "agent_id",
		`{"agent_id":7}`:  "agent_id",
		`{"agent_id":"` + strings.Repeat("x", 257) + `"}`:                 "agent_id",
		`{"agent_id":"a\u0000"}`:                                          "U+0000",
		`{"agent_id":"../a"}`:                                             "slash",
		`{"agent_id":"a","pid":3}`:                                        "pid",
		`{"agent_id":"a","capabilities":{}}`:                              "allowed_syscalls",
		`{"agent_id":"a","capabilities":{"allowed_syscalls":["Nope.*"]}}`: "Nope.",
	} {
		c.refused(422, "Process.Attach", data, texts)
	}
	if a := c.call("Process.List", `{}`, nil); strings.Contains(string(a.Data), `"pid"`) || a.Metadata.Kernel.PID != 0 {
		t.Errorf("%s, as pid %d", a.Data, a.Metadata.Kernel.PID)
	}
}
