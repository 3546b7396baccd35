package kernel_test

import (
	"fmt"
	"testing"
	"time"
)

// TestShutdownWhileWaiting ends a kernel during a waiting receive: it does not wait for messages.
func TestShutdownWhileWaiting(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.dial(t)
	pid := c.spawn(0, messenger)
	c.send("Ipc.Receive", fmt.Sprintf(`{"pid":%d,"wait_ms":40000}`, pid), "")
	c2 := d.dial(t)
	c2.call("Syscall.Ping", `{"payload":1}`, nil)
	begun := time.Now()
	d.stop()
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("the end took %v", took)
	}
}

func TestQueryProofFound(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	a := c.call("Syscall.Ping", `{"payload":1}`, nil)
	var log struct{ Entries []entry }
	c.call("Audit.Log", fmt.Sprintf(`{"since_seq":%d,"limit":1}`, a.Metadata.Kernel.Seq-1), &log)
	if len(log.Entries) != 1 {
		t.Errorf("a query's proof is not in the log: %+v", log)
	}
}
