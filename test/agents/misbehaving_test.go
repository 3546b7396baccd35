package agents_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// An agent that misuses its channel or misbehaves affects only itself: another agent works, the operator is served, the
// daemon does not grow, and the agent can be ended.
func TestMisbehaviourStaysItsOwnProblem(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		program, more string
		ends          bool // without being ended
	}{
		{"flood", "", false},
		{"unread", "", false},
		{"unread", `,"channel":"fd3"`, false},
		{"garbage", "", false},
		{"half", "", false},
		{"shut", "", false},
		{"silent", "", false},
		{"idle", "", false},
		{"eat", `,"limits":{"memory_bytes":268435456}`, true},
	} {
		t.Run(test.program+test.more, func(t *testing.T) {
			t.Parallel()
			p, daemon := start(t)
			c := p.dial(t)
			bad := c.spawn(t, allowAll+test.more, test.program, "10") // the size of a flood's requests; the others ignore it
			for range 3 {
				good := c.spawn(t, allowAll, "ping")
				if d := c.awaitGone(t, good); number(d.Exit.Code) != 0 {
					t.Errorf("another agent ended as %+v", d.Exit)
				}
			}
			if test.ends {
				if d := c.awaitGone(t, bad); d.Exit.Fault == nil || *d.Exit.Fault != "RECOVERABLE" {
					t.Errorf("the agent ended as %+v", d.Exit)
				}
			} else if d := c.get(t, bad); d.State != "RUNNING" {
				t.Errorf("the agent is %s, %+v", d.State, d.Exit)
			}
			if used := residentMB(t, daemon.PID()); used > 200 {
				t.Errorf("the daemon has grown to %d MB", used)
			}
			c.must(t, "command", "Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, bad), nil)
			if d := c.awaitGone(t, bad); !test.ends && d.reason() != "ordered" {
				t.Errorf("after Terminate the agent ended as %+v", d.Exit)
			}
		})
	}
}

// residentMB returns the resident memory of a process of the system, in MB.
func residentMB(t testing.TB, osPID int) (mb int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", osPID))
	testkit.Must(t, err)
	_, after, _ := strings.Cut(string(status), "VmRSS:")
	var kb int
	if _, err := fmt.Sscan(after, &kb); err != nil {
		t.Fatal(err)
	}
	return kb >> 10
}
