package soak_test

import (
	"fmt"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel/process"
)

// fill ends as many processes as the kernel remembers. From then on each that ends has another forgotten, and the table of
// the processes grows no more.
func fill(t *testing.T, p *place) { t.Helper(); live(t, p, process.Remembered) }

// live has so many processes begin and end. Half as many as the kernel keeps events of processes make it keep no more.
func live(t *testing.T, p *place, n int) {
	t.Helper()
	c, err := p.dial()
	testkit.Must(t, err)
	defer c.end(nil)
	var root struct {
		PID int64 `json:"child_pid"`
	}
	testkit.Must(t, c.call("Syscall.Spawn", `{"child_agent_id":"root","capabilities":{"allowed_syscalls":["*"]}}`, &root))
	const batch = 100
	for i := range n / batch {
		for j := range batch {
			c.ask(0, "Syscall.Spawn", fmt.Sprintf(`{"pid":%d,"child_agent_id":"child-%d-%d","capabilities":{"allowed_syscalls":["SYS_ALLOC"]}}`, root.PID, i, j))
		}
		if _, err := c.flush(); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Must(t, c.call("Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, root.PID), nil))
}
