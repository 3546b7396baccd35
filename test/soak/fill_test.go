package soak_test

import (
	"fmt"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel/process"
)

// fill ends as many processes as the kernel remembers. From then on the kernel forgets one for each that ends, and the
// process table does not grow.
func fill(t *testing.T, p *place) { t.Helper(); live(t, p, process.Remembered) }

// live starts and ends that many processes. If they are half as many as the process events that the kernel keeps, it keeps
// no more from then on.
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
