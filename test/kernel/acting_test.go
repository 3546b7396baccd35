package kernel_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
)

// TestClock advances the tick by hand and by a call's own tick: it only grows, also across restarts.
func TestClock(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.dial(t)
	tick := func() int64 {
		var out struct {
			Tick int64 `json:"tick"`
		}
		c.call("Clock.Get", `{}`, &out)
		return out.Tick
	}
	if got := tick(); got != 0 {
		t.Errorf("tick %d at the start", got)
	}
	c.call("Clock.Advance", `{"ticks":5}`, nil)
	a := c.call("Memory.Set", `{"key":"k","value":1,"tick":9}`, nil)
	if got := tick(); got != 9 || a.Metadata.Kernel.Tick != 9 {
		t.Errorf("tick %d, the call's %d, want 9", got, a.Metadata.Kernel.Tick)
	}
	c.ask("Memory.Set", `{"key":"k","value":1,"tick":4}`)
	if got := tick(); got != 9 {
		t.Errorf("the clock went back to %d", got)
	}
	c.refused(422, "Clock.Advance", `{"ticks":-1}`, "ticks")
	d.restart(t)
	c = d.dial(t)
	if got := tick(); got < 9 {
		t.Errorf("tick %d after a restart", got)
	}
}

// TestActing makes calls as a process: what it has and gets is the process's, and the journal names it.
func TestActing(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	pid := c.spawn(0, `{"allowed_syscalls":["*"],"resource_quotas":{"gpu":1}}`)
	a := c.call("Syscall.Alloc", fmt.Sprintf(`{"pid":%d,"resource_id":"gpu","amount":1}`, pid), nil)
	if a.Metadata.Kernel.PID != pid {
		t.Errorf("recorded as pid %d, want %d", a.Metadata.Kernel.PID, pid)
	}
	if a := c.call("Syscall.Query", `{"resource_id":"gpu"}`, nil); a.Metadata.Kernel.PID != 0 {
		t.Errorf("recorded as pid %d, want 0", a.Metadata.Kernel.PID)
	}
	c.refused(403, "Syscall.Query", `{"pid":99,"resource_id":"gpu"}`, "pid 99 may not call Syscall.Query")
	c.refused(422, "Syscall.Query", `{"pid":-1,"resource_id":"gpu"}`, "pid")
}

// TestUnknownMembers passes each syscall an unknown member: the error is 422, with its name.
func TestUnknownMembers(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	for _, row := range schema.Syscalls() {
		if row.Internal {
			continue
		}
		c.refused(422, row.Type, `{"no_such_member":1}`, "no_such_member")
	}
}

// TestOlderDialect makes a few calls as OsEvents, on the events socket.
func TestOlderDialect(t *testing.T) {
	t.Parallel()
	c := start(t).dialOn(t, "events.sock")
	for _, call := range []struct{ frame, kind, payload string }{
		{`{"type":"command","name":"Memory.Set","payload":{"key":"k","value":7}}`, "response", `{"success":true}`},
		{`{"type":"query","name":"Memory.Get","payload":{"key":"k"}}`, "response", `7`},
		{`{"type":"query","name":"Memory.Get","payload":{"key":"gone"}}`, "error", `"code":"NOT_FOUND"`},
		{`{"type":"query","name":"Syscall.Query","payload":{"pid":9,"resource_id":"gpu"}}`, "error", `"code":"UNAUTHORIZED"`},
		{`{"type":"command","name":"Syscall.Alloc","payload":{"resource_id":"gpu","amount":9}}`, "error", `"code":"INSUFFICIENT_RESOURCES"`},
		{`{"type":"command","name":"Memory.Set","payload":{"key":"k","value":1,"x":1}}`, "error", `"code":"INVALID_INPUT"`},
	} {
		c.write(call.frame + "\n")
		a := c.next()
		if a.Type != call.kind || !strings.Contains(string(a.Payload), call.payload) {
			t.Errorf("%s: got %s %s, want %s %s", call.frame, a.Type, a.Payload, call.kind, call.payload)
		}
		if call.kind == "response" && (a.Metadata.Kernel == nil || !json.Valid(a.Payload)) {
			t.Errorf("%s: no proof", call.frame)
		}
	}
}
