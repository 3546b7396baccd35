package host_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// outsider starts a process that is not an agent's and ends with code 1 when its input ends. The returned function ends it,
// and fails the test if it has ended differently.
func outsider(t *testing.T) (pid int, end func()) {
	t.Helper()
	if status, err := os.ReadFile("/proc/self/status"); err != nil || !strings.Contains(string(status), "\nNoNewPrivs:\t0\n") {
		t.Skip("with no_new_privs set, the host takes every process of this test for an agent's")
	}
	c := exec.CommandContext(t.Context(), "/bin/sh", "-c", "read x")
	in, err := c.StdinPipe()
	testkit.Must(t, err)
	testkit.Must(t, c.Start())
	return c.Process.Pid, func() {
		t.Helper()
		testkit.Must(t, in.Close())
		if err := c.Wait(); c.ProcessState.ExitCode() != 1 {
			t.Errorf("the outsider ended with %v, %v; want code 1, at the end of its input", c.ProcessState, err)
		}
	}
}

// looked waits until the host has checked all processes since the call: an agent that breaks its own mark was found.
func looked(t *testing.T, h *host.Host, spoils ...string) {
	t.Helper()
	c := helper(t, append([]string{"t-frame"}, spoils...)...)
	c.Sandbox = host.SandboxOff
	p := start(t, h, c)
	wait(t, p)
	testkit.Must(t, p.Terminate(t.Context(), 0))
}

// TestFrame: an agent without a sandbox that lowers the limits of other processes does not cause them to be killed or
// refused; only the agent itself is killed.
func TestFrame(t *testing.T) {
	t.Parallel()
	h := open(t)
	pid, end := outsider(t)
	looked(t, h, itoa(pid))
	if owner, err := h.Owner(pid); owner != nil || err != nil {
		t.Errorf("the outsider's owner is %v, %v", owner, err)
	}
	end()
}

// TestSpoiledEndIsRead: a process that was killed because it had broken its mark, and is found again before its end is
// read, can still be reaped by its parent. The test does not run in parallel: the host of another test in this process
// would take the process for an orphan.
func TestSpoiledEndIsRead(t *testing.T) {
	h := open(t)
	c := helper(t, "t-spoil-told")
	c.Sandbox = host.SandboxOff
	p := start(t, h, c)
	if line, err := bufio.NewReader(p.Conn()).ReadString('\n'); err != nil {
		t.Fatal(line, err)
	}
	const looks = 2 * time.Second // all processes are checked more than once in it; what the agent left is not removed before
	testkit.Must(t, p.Terminate(t.Context(), looks))
	if e := wait(t, p); e.Signal != unix.SIGKILL {
		t.Errorf("the program ended as %v, want killed", e)
	}
}

// TestGivenMark: processes that got an agent's mark from outside do not belong to it: they do not count towards its number
// of processes, and its end neither waits for them nor kills them.
func TestGivenMark(t *testing.T) {
	t.Parallel()
	h := open(t)
	c := shell(t, "read x")
	c.Limits.Processes = 2
	p := start(t, h, c)
	locks, rss := host.MarkOf(p)
	var ends []func()
	for range 4 {
		pid, end := outsider(t)
		ends = append(ends, end)
		testkit.Must(t, unix.Prlimit(pid, unix.RLIMIT_RSS, &unix.Rlimit{Cur: rss, Max: rss}, nil))
		testkit.Must(t, unix.Prlimit(pid, unix.RLIMIT_LOCKS, &unix.Rlimit{Cur: locks, Max: locks}, nil))
		if p.Has(pid) {
			t.Errorf("the outsider %d counts as the agent's process", pid)
		}
	}
	looked(t, h)
	looked(t, h) // the first check is complete
	select {
	case <-p.Done():
		t.Errorf("the agent ended: %v", wait(t, p))
	default:
	}
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	testkit.Must(t, p.Terminate(ctx, time.Hour))
	if exit := wait(t, p); exit.Left != 0 || exit.Reason != host.ReasonOrdered {
		t.Errorf("the agent ended: %+v", exit)
	}
	for _, end := range ends {
		end()
	}
}
