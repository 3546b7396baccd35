package host_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/host"
)

// TestLimits: each limit is enforced, and the end shows which one was exceeded.
func TestLimits(t *testing.T) {
	t.Parallel()
	h := open(t)
	const spin = "while :; do :; done"
	for name, c := range map[string]struct {
		command host.Command
		limits  host.Limits
		says    string
		reason  host.Reason
	}{
		"files":                 {helper(t, "t-files"), host.Limits{OpenFiles: 64}, "opened at most 70: too many open files\n", host.ReasonExited},
		"memory":                {helper(t, "t-memory"), host.Limits{MemoryBytes: 512 << 20}, "memory: cannot allocate memory\n", host.ReasonExited},
		"cpu":                   {shell(t, spin), host.Limits{CPUSeconds: 1}, "", host.ReasonCPU},
		"cpu, XCPU is ignored":  {shell(t, "trap '' XCPU; "+spin), host.Limits{CPUSeconds: 1}, "", host.ReasonCPU},
		"wall":                  {shell(t, "trap '' TERM; sleep 1000"), host.Limits{WallSeconds: 1}, "", host.ReasonWall},
		"killed, far from cpu":  {shell(t, "kill -KILL $$"), host.Limits{CPUSeconds: 100}, "", host.ReasonSignalled},
		"core":                  {shell(t, "ulimit -c; ulimit -Hc"), host.Limits{}, "0\n0\n", host.ReasonExited},
		"no limit is as it was": {shell(t, "ulimit -t; ulimit -v; ulimit -d"), host.Limits{}, "unlimited\nunlimited\nunlimited\n", host.ReasonExited},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.command.Limits = c.limits
			p := start(t, h, c.command)
			text := all(t, p)
			exit := wait(t, p)
			// A program may have a few descriptors at the start, so only the bound matters.
			if name == "files" {
				text = strings.Replace(text, "at most 60", "at most 70", 1)
			}
			if text != c.says || exit.Reason != c.reason {
				t.Errorf("said %q, %v; want %q, %s", text, exit, c.says, c.reason)
			}
		})
	}
}

// TestBomb: an agent that forks without end, each process into a new session, is killed as a whole.
func TestBomb(t *testing.T) {
	t.Parallel()
	h := open(t)
	c := helper(t, "t-bomb", "4")
	c.Limits.Processes = 20
	p := start(t, h, c)
	exit := wait(t, p)
	if exit.Reason != host.ReasonProcesses || exit.Signal != syscall.SIGKILL || exit.Cause() != host.CauseFlood || exit.Left < 20 {
		t.Errorf("got %+v", exit)
	}
	for _, pid := range numbers() {
		if owner, err := h.Owner(pid); owner != nil || errors.Is(err, host.ErrStranger) && p.Has(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
}

// TestBelowBound: an agent within its number of processes is not killed.
func TestBelowBound(t *testing.T) {
	t.Parallel()
	c := shell(t, "sleep 0.5 & sleep 0.5 & wait; echo well")
	c.Limits.Processes = 4
	p := start(t, open(t), c)
	if got := all(t, p); got != "well\n" {
		t.Errorf("got %q", got)
	}
	if exit := wait(t, p); exit.Code != 0 || exit.Left != 0 {
		t.Errorf("got %v", exit)
	}
}
