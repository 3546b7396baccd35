package kernel_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestReceiverGoesAway closes connections with waiting calls: later messages are for later receivers.
func TestReceiverGoesAway(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.dial(t)
	pid := c.spawn(0, messenger)
	for i := range 10 {
		gone := d.dial(t)
		gone.send("Ipc.Receive", fmt.Sprintf(`{"pid":%d,"wait_ms":600000}`, pid), "")
		testkit.Must(t, gone.conn.Close())
		c.ended(int64(2*i + 1))
		c.call("Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":%d}`, pid, i), nil)
		if got := c.receive(pid, ""); got != fmt.Sprint(i) {
			t.Fatalf("round %d: received %q", i, got)
		}
	}
}

// ended waits until n receives have ended: the kernel counts a cancelled one too.
func (c *client) ended(n int64) {
	c.t.Helper()
	for deadline := time.Now().Add(testkit.Patience); c.metrics().ByCode["Ipc.Receive"] < n; {
		if time.Now().After(deadline) {
			c.t.Fatal("a receive of a closed connection still waits")
		}
	}
}
