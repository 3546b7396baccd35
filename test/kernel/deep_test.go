package kernel_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
)

// TestDeepValues passes values as deep as a frame allows to every command that stores them. An accepted value is returned
// in a frame that its client can read, is in the journal, which can be read, and is there after a restart.
func TestDeepValues(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.dial(t)
	pid := c.spawn(0, `{"allowed_syscalls":["*"]}`)
	subscriber := c.spawn(0, `{"allowed_syscalls":["*"]}`)
	feed := d.dial(t)
	feed.call("Ipc.Subscribe", fmt.Sprintf(`{"pid":%d,"ack":true}`, subscriber), nil)
	taken := make(map[string]int)
	try := func(depth int, typ, data string) bool {
		value := strings.Repeat("[", depth) + strings.Repeat("]", depth)
		a := c.ask(typ, strings.Replace(data, "VALUE", value, 1))
		if a.Kind == "error" {
			if c.fault(a).Code != 422 {
				t.Errorf("%s of depth %d: %s", typ, depth, a.Data)
			}
			return false
		}
		taken[typ] = max(taken[typ], depth)
		return true
	}
	for depth := 50; depth <= schema.MaxDepth-3; depth++ { // the frame, its data and a member are around it
		if try(depth+1, "Memory.Set", `{"key":"k","value":VALUE}`) {
			c.call("Memory.Get", `{"key":"k"}`, nil)
		}
		try(depth, "Syscall.CommitDelta", fmt.Sprintf(`{"pid":%d,"changes":{"a":VALUE}}`, pid))
		c.call("Syscall.GetState", fmt.Sprintf(`{"target_pid":%d}`, pid), nil)
		if try(depth, "Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":VALUE}`, pid)) {
			c.call("Ipc.Receive", fmt.Sprintf(`{"pid":%d}`, pid), nil)
		}
		if try(depth, "Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":VALUE}`, subscriber)) {
			feed.event(schema.OsMessage, "Ipc.MessageDelivered")
		}
		if try(depth, "Ipc.Broadcast", `{"payload":VALUE}`) {
			c.call("Ipc.Receive", fmt.Sprintf(`{"pid":%d}`, pid), nil)
			feed.event(schema.OsMessage, "Ipc.MessageDelivered")
		}
	}
	for typ, most := range map[string]int{"Memory.Set": 62, "Syscall.CommitDelta": 60, "Syscall.SendMsg": 56, "Ipc.Broadcast": 56} {
		if taken[typ] != most {
			t.Errorf("%s took values of at most %d levels, want %d", typ, taken[typ], most)
		}
	}
	c.wholeLog()
	d.restart(t)
	c = d.dial(t)
	c.call("Memory.Get", `{"key":"k"}`, nil)
	c.wholeLog()
}
