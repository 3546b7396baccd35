package kernel_test

import (
	"encoding/json"
	"fmt"
	"testing"
)

// TestReceiveWaits: a message from another connection wakes a receive. Others are served meanwhile.
func TestReceiveWaits(t *testing.T) {
	t.Parallel()
	d := start(t)
	c, waiting := d.dial(t), d.dial(t)
	pid := c.spawn(0, messenger)
	id := waiting.send("Ipc.Receive", fmt.Sprintf(`{"pid":%d,"wait_ms":600000}`, pid), "")
	c.call("Syscall.Ping", `{"payload":1}`, nil)
	c.call("Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":"wake"}`, pid), nil)
	a := waiting.next()
	var m mail
	if err := json.Unmarshal(a.Data, &m); err != nil || a.Metadata.Causation != id || m.payloads() != "wake" {
		t.Errorf("got %s for %q, %v", a.Data, a.Metadata.Causation, err)
	}
	c.call("Ipc.Receive", fmt.Sprintf(`{"pid":%d,"wait_ms":1}`, pid), &m)
	if len(m.Messages) != 0 {
		t.Errorf("received twice: %s", m.payloads())
	}
}
