package agents_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// A repeated termination under the same idempotency key is answered no earlier than the first: when no process of the agent
// is left, and its end is recorded. A kill of the kernel in between does not change that.
func TestTerminateRepeated(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		grace, reason string
		killed        bool
	}{
		"while it is on its way out": {"2s", "ordered", false},
		"after a kernel was killed":  {"1h", "unknown", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			testkit.WriteFile(t, p.Path("config.toml"), strings.Replace(settings, `grace = "300ms"`, fmt.Sprintf("grace = %q", test.grace), 1))
			daemon := p.launch(t)
			first, c := p.dial(t), p.dial(t)
			pid := c.spawn(t, allowAll, "stubborn")
			orphan, own := c.awaitPID(t, pid, "orphan"), c.awaitPID(t, pid, "own")
			end := func(c *client) {
				t.Helper()
				testkit.Must(t, c.sendKeyed("k", "Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, pid)))
			}
			end(first)
			c.awaitState(t, pid, "TERMINATED")
			if !testkit.Alive(own) && !test.killed { // TERM cannot have ended it: the machine was busy
				t.Skip("the program has ended already: the test shows nothing")
			}
			if test.killed {
				daemon.Kill(t)
				p.launch(t)
				c = p.dial(t)
			}
			end(c)
			if f, err := c.next(); err != nil || f.Kind != "reply" {
				t.Fatalf("the repetition is answered with %+v, %v", f, err)
			}
			if testkit.Alive(own) || testkit.Alive(orphan) {
				t.Error("Terminate was answered while a process was left")
			}
			if d := c.get(t, pid); d.OSPID != nil || d.reason() != test.reason {
				t.Errorf("afterwards the process is %+v, %+v", d, d.Exit)
			}
		})
	}
}
