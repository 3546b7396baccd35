package agents_test

import (
	"fmt"
	"testing"
)

const allowAll = `,"capabilities":{"allowed_syscalls":["*"]}`

// An agent communicates over either channel with its own PID, and its end is recorded with its exit code.
func TestAgentSpeaksWithTheKernel(t *testing.T) {
	t.Parallel()
	p, _ := start(t)
	c := p.dial(t)
	for _, channel := range []string{"stdio", "fd3"} {
		pid := c.spawn(t, allowAll+fmt.Sprintf(`,"channel":%q`, channel), "ping")
		d := c.awaitGone(t, pid)
		if d.reason() != "exited" || d.Exit.Code == nil || *d.Exit.Code != 0 {
			t.Errorf("%s: ended as %+v", channel, d.Exit)
		}
		if got := c.awaitKey(t, "pinged"); got != fmt.Sprint(pid) {
			t.Errorf("%s: its calls were made by pid %s, want %d", channel, got, pid)
		}
	}
}
