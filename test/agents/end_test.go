package agents_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// A program that crashes is restarted after its pause; its restarts are counted and the crash is recorded. The third
// consecutive fault causes a quarantine, which the kernel's clock ends.
func TestCrashesAreAnsweredByTheTable(t *testing.T) {
	t.Parallel()
	p, _ := start(t)
	c := p.dial(t)
	pid := c.spawn(t, allowAll+`,"restart":"on-failure"`, "exit", "3")
	d := c.awaitState(t, pid, "BLOCKED")
	if d.reason() != "exited" || d.Exit.Code == nil || *d.Exit.Code != 3 || d.Exit.Fault == nil || *d.Exit.Fault != "QUARANTINE" {
		t.Errorf("in quarantine the last end is %+v", d.Exit)
	}
	if *d.Restarts != 2 || d.BlockedUntil == nil || *d.BlockedUntil != 30 {
		t.Errorf("restarts %d, blocked until %v, want 2 and 30", *d.Restarts, d.BlockedUntil)
	}
	for quarantine, ticks := range []int{30, 60, 120} {
		d = c.awaitState(t, pid, "BLOCKED")
		if *d.Restarts != int64(quarantine)+2 {
			t.Errorf("%d restarts before quarantine %d", *d.Restarts, quarantine+1)
		}
		c.must(t, "command", "Clock.Advance", fmt.Sprintf(`{"ticks":%d}`, ticks), nil)
		testkit.Eventually(t, "end of quarantine", func() bool { return *c.get(t, pid).Restarts == int64(quarantine)+3 })
	}
	d = c.awaitGone(t, pid)
	if d.Exit.Fault == nil || *d.Exit.Fault != "EXILE" {
		t.Errorf("exiled as %+v", d.Exit)
	}
	if _, err := c.call("command", "Memory.Set", fmt.Sprintf(`{"pid":%d,"key":"a","value":1}`, pid)); err == nil {
		t.Error("a process in exile can still make calls")
	}
}

// A quarantine lasts for its number of ticks, also across a restart of the kernel. A process in quarantine can be ended.
func TestQuarantineOutlivesTheDaemon(t *testing.T) {
	t.Parallel()
	p, daemon := start(t)
	c := p.dial(t)
	pid := c.spawn(t, allowAll+`,"restart":"always"`, "exit", "3")
	c.awaitState(t, pid, "BLOCKED")
	c.must(t, "command", "Clock.Advance", `{"ticks":29}`, nil)
	c.awaitGone(t, c.spawn(t, "", "doze")) // longer than the pause that a restart without quarantine takes
	if d := c.get(t, pid); d.State != "BLOCKED" || *d.Restarts != 2 {
		t.Errorf("a tick before its end the quarantine is over: %+v", d)
	}
	daemon.Stop(t)
	p.launch(t)
	c = p.dial(t)
	if d := c.get(t, pid); d.State != "BLOCKED" || *d.BlockedUntil != 30 || *d.Restarts != 2 {
		t.Errorf("after the kernel's restart: %+v", d)
	}
	c.must(t, "command", "Clock.Advance", `{"ticks":1}`, nil)
	testkit.Eventually(t, "the next quarantine", func() bool {
		d := c.get(t, pid)
		return d.State == "BLOCKED" && *d.Restarts == 3 && *d.BlockedUntil == 90
	})
	c.must(t, "command", "Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, pid), nil)
	if d := c.get(t, pid); d.State != "TERMINATED" || d.reason() != "exited" {
		t.Errorf("terminated in quarantine: %+v", d)
	}
}

// The ends of a program, and their consequences by restart policy.
func TestEndsAreRecorded(t *testing.T) {
	t.Parallel()
	p, _ := start(t)
	c := p.dial(t)
	for _, test := range []struct {
		name, more, program, arg string
		reason, fault            string
		code, signal             int64
	}{
		{"finished", "", "exit", "0", "exited", "", 0, -1},
		{"finished, on-failure", `,"restart":"on-failure"`, "exit", "0", "exited", "", 0, -1},
		{"failed", "", "exit", "7", "exited", "RECOVERABLE", 7, -1},
		{"signalled", "", "signal", "9", "signalled", "RECOVERABLE", -1, 9},
		{"wall clock", `,"limits":{"wall_seconds":4}`, "idle", "", "limit:wall", "RECOVERABLE", -1, 9},
		{"too many processes", `,"limits":{"processes":3}`, "bomb", "", "limit:processes", "QUARANTINE", -1, 9},
		{"spoiled mark", "", "spoil", "", "signalled", "RECOVERABLE", -1, 9},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := c.awaitGone(t, c.spawn(t, allowAll+test.more, test.program, test.arg))
			e := d.Exit
			if e.Reason != test.reason || number(e.Code) != test.code || number(e.Signal) != test.signal {
				t.Errorf("ended as %s, code %d, signal %d; want %s, %d, %d",
					e.Reason, number(e.Code), number(e.Signal), test.reason, test.code, test.signal)
			}
			fault := ""
			if e.Fault != nil {
				fault = *e.Fault
			}
			if fault != test.fault || *d.Restarts != 0 {
				t.Errorf("fault %q after %d restarts, want %q", fault, *d.Restarts, test.fault)
			}
		})
	}
}

// TestBudgetOfTime: a program ends with the wall_seconds of its budget or of an ancestor's, and is not restarted; one whose
// time has passed is not started.
func TestBudgetOfTime(t *testing.T) {
	t.Parallel()
	p, _ := start(t)
	c := p.dial(t)
	within := func(seconds int) string {
		return fmt.Sprintf(`,"capabilities":{"allowed_syscalls":["*"],"budget":{"wall_seconds":%d}}`, seconds)
	}
	var parent, child struct {
		PID int64 `json:"child_pid"`
	}
	c.must(t, "command", "Syscall.Spawn", `{"child_agent_id":"parent"`+within(5)+`}`, &parent)
	pids := map[string]int64{
		"an ancestor's":    c.spawn(t, fmt.Sprintf(`,"restart":"always","pid":%d`, parent.PID), "idle"),
		"its own":          c.spawn(t, within(3)+`,"restart":"always"`, "idle"),
		"before its limit": c.spawn(t, within(3)+`,"restart":"always","limits":{"wall_seconds":1000}`, "idle"),
	}
	for name, pid := range pids {
		d := c.awaitGone(t, pid)
		if *d.Restarts != 0 || d.Exit.Reason != "limit:wall" && d.Exit.Reason != "not started" { // depends on the speed of the machine
			t.Errorf("%s: %+v after %d restarts", name, d.Exit, *d.Restarts)
		}
	}
	c.must(t, "command", "Syscall.Spawn", `{"child_agent_id":"late","command":["/bin/sh"]`+within(0)+`}`, &child)
	if d := c.get(t, child.PID); d.reason() != "not started" || !strings.Contains(*d.Exit.Why, "wall_seconds of its budget are over") {
		t.Errorf("no time at all: %+v", d.Exit)
	}
}

// TestBudgetOfTimeIsGrantedAnew: a running program ends with the wall_seconds that were granted last, to it or to an
// ancestor.
func TestBudgetOfTimeIsGrantedAnew(t *testing.T) {
	t.Parallel()
	p, _ := start(t)
	c := p.dial(t)
	const budget = `,"capabilities":{"allowed_syscalls":["*"],"budget":{"wall_seconds":%d}}`
	grant := func(pid, seconds int64) {
		c.must(t, "command", "Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["*"],"budget":{"wall_seconds":%d}}`, pid, seconds), nil)
	}
	parent := c.spawn(t, fmt.Sprintf(budget, 1000), "idle")
	longer := c.spawn(t, fmt.Sprintf(budget, 5), "idle")
	grant(longer, 1000)
	late := c.spawn(t, fmt.Sprintf(budget, 6), "idle")
	child := c.spawn(t, fmt.Sprintf(`,"pid":%d`, parent), "idle")
	ended := map[string]int64{
		"the first":     c.spawn(t, "", "idle"),
		"less":          c.spawn(t, fmt.Sprintf(budget, 1000), "idle"),
		"an ancestor's": child,
		"none":          late,
	}
	grant(ended["the first"], 1)
	grant(ended["less"], 0)
	grant(parent, 1)
	for name, pid := range ended {
		if d := c.awaitGone(t, pid); d.Exit.Reason != "limit:wall" && (pid != child || d.Exit.Reason != "ordered") { // with its parent
			t.Errorf("%s: %+v", name, d.Exit)
		}
	}
	if d := c.get(t, longer); d.Exit != nil { // its first time ended before that of the last
		t.Errorf("longer: %+v", d.Exit)
	}
}

func number(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}

// A program that cannot be started is an agent that has ended with a reason.
func TestProgramsThatCannotBeStarted(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	keys, links := p.Path("k"), p.Path("l")
	for _, dir := range []string{keys, links} {
		testkit.Must(t, os.Mkdir(dir, 0o700))
	}
	for name, target := range map[string]string{"journal": "../s/journal", "k": keys} {
		testkit.Must(t, os.Symlink(target, filepath.Join(links, name)))
	}
	testkit.WriteFile(t, p.Path("config.toml"), settings+fmt.Sprintf("[crypto]\nidentity = %q\n", filepath.Join(links, "k/not/there/yet")))
	p.launch(t)
	c := p.dial(t)
	for _, test := range []struct{ command, more, why string }{
		{`["no-such-program-anywhere"]`, "", "is not in PATH"},
		{`["/etc/hostname"]`, `,"restart":"always"`, "not executable"},
		{`["/bin/sh"]`, `,"cwd":"/no/such/place"`, "not found"},
		{`["/bin/sh"]`, fmt.Sprintf(`,"cwd":%q`, p.Dir), "the kernel's own"},
		{`["/bin/sh"]`, fmt.Sprintf(`,"cwd":%q`, p.Path("s/journal")), "the kernel's own"},
		{`["/bin/sh"]`, fmt.Sprintf(`,"cwd":%q`, p.Path("r/../r")), "the kernel's own"},
		{`["/bin/sh"]`, fmt.Sprintf(`,"cwd":%q`, p.Path("no/such")+"/../../s/journal"), "the kernel's own"},
		{`["/bin/sh"]`, fmt.Sprintf(`,"cwd":%q`, p.Path("l/journal")), "symbolic link"},
		{`["/bin/sh"]`, fmt.Sprintf(`,"cwd":%q`, p.Path("l/k")), "symbolic link"},
		{`["/bin/sh"]`, fmt.Sprintf(`,"cwd":%q`, keys), "which the kernel trusts"},
		{`["/bin/sh"]`, fmt.Sprintf(`,"cwd":%q`, links), "which the kernel trusts"},
	} {
		var out struct {
			ChildPID int64 `json:"child_pid"`
		}
		c.must(t, "command", "Syscall.Spawn", fmt.Sprintf(`{"child_agent_id":"a","command":%s%s}`, test.command, test.more), &out)
		d := c.get(t, out.ChildPID) // the answer followed the failure
		if d.State != "TERMINATED" || d.reason() != "not started" || !strings.Contains(*d.Exit.Why, test.why) {
			t.Errorf("%s: %s, %+v, want it not started: %s", test.command, d.State, d.Exit, test.why)
		}
	}
}

// awaitPID returns the number of a process of an agent, which the agent stores under a key as it sees it.
func (c *client) awaitPID(t *testing.T, pid int64, key string) (number int) {
	t.Helper()
	_, err := fmt.Sscan(c.awaitKey(t, key), &number)
	testkit.Must(t, err)
	return testkit.Outside(t, *c.get(t, pid).OSPID, number)
}

// Terminate is answered when no process of an agent is left: processes that ignore TERM are killed, with what they have
// started, including orphans in separate sessions.
func TestTerminateTakesEverything(t *testing.T) {
	t.Parallel()
	p, _ := start(t)
	c := p.dial(t)
	pid := c.spawn(t, allowAll, "stubborn")
	orphan, own := c.awaitPID(t, pid, "orphan"), c.awaitPID(t, pid, "own")
	d := c.get(t, pid)
	if d.State != "RUNNING" || *d.OSPID != own || !testkit.Alive(own) || !testkit.Alive(orphan) || d.Sandbox == nil {
		t.Fatalf("before: %+v, own %d, orphan %d", d, own, orphan)
	}
	c.must(t, "command", "Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, pid), nil)
	if testkit.Alive(own) || testkit.Alive(orphan) {
		t.Error("Terminate was answered while a process was left")
	}
	d = c.get(t, pid)
	if d.State != "TERMINATED" || d.OSPID != nil || d.reason() != "ordered" || number(d.Exit.Signal) != int64(syscall.SIGKILL) {
		t.Errorf("after: %+v, %+v", d, d.Exit)
	}
	c.must(t, "command", "Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, pid), nil) // it may be repeated
}

// Ending a process ends the programs of its descendants; an agent may end itself, and gets an answer.
func TestTerminateTakesDescendants(t *testing.T) {
	t.Parallel()
	p, _ := start(t)
	c := p.dial(t)
	parent := c.spawn(t, allowAll, "parent", self(t))
	child := c.awaitKey(t, "child")
	d := c.get(t, parent)
	var childPID int64
	fmt.Sscan(child, &childPID)
	grown := c.get(t, childPID)
	if grown.State != "RUNNING" {
		t.Fatalf("the child is %+v", grown)
	}
	c.must(t, "command", "Memory.Set", `{"key":"go","value":1}`, nil) // the parent ends itself
	d = c.awaitGone(t, parent)
	if d.reason() != "ordered" {
		t.Errorf("the parent ended as %+v", d.Exit)
	}
	c.awaitGone(t, childPID)
	if testkit.Alive(*grown.OSPID) {
		t.Error("the child's program still runs")
	}
}

// A process that ends itself is answered on its own channel, while its program still reads.
func TestTerminateOneself(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	testkit.WriteFile(t, p.Path("config.toml"), strings.Replace(settings, `grace = "300ms"`, `grace = "1h"`, 1)) // so that TERM is not sent before the answer
	p.launch(t)
	c := p.dial(t)
	for _, channel := range []string{"stdio", "fd3"} {
		pid := c.spawn(t, fmt.Sprintf(`%s,"channel":%q`, allowAll, channel), "leave")
		// After the answer it may end by itself, before the kernel ends it; its exit code shows that it got the answer.
		if d := c.awaitGone(t, pid); number(d.Exit.Code) != 7 {
			t.Errorf("%s: it ended as %+v", channel, d.Exit)
		}
	}
}

// A shutdown ends all agents; the next start restarts only those with the policy always.
func TestShutdownTakesAllDown(t *testing.T) {
	t.Parallel()
	p, daemon := start(t)
	c := p.dial(t)
	var pids []int64
	var own []int
	for _, restart := range []string{"never", "on-failure", "always"} {
		pid := c.spawn(t, allowAll+fmt.Sprintf(`,"restart":%q`, restart), "idle")
		pids, own = append(pids, pid), append(own, *c.get(t, pid).OSPID)
	}
	daemon.Stop(t)
	for _, osPID := range own {
		if testkit.Alive(osPID) {
			t.Errorf("process %d outlived the daemon", osPID)
		}
	}
	p.launch(t)
	c = p.dial(t)
	for i, state := range []string{"TERMINATED", "TERMINATED", "RUNNING"} {
		d := c.awaitState(t, pids[i], state)
		if d.reason() != "shutdown" {
			t.Errorf("pid %d ended as %+v", pids[i], d.Exit)
		}
	}
	c.must(t, "query", "Audit.Verify", `{}`, nil)
}

// The standard error of an agent is stored outside of its working directory, where it cannot change it.
func TestLogIsKept(t *testing.T) {
	t.Parallel()
	p, _ := start(t)
	c := p.dial(t)
	pid := c.spawn(t, allowAll, "loud", "one\ntwo\n")
	c.awaitGone(t, pid)
	if got := testkit.ReadFile(t, filepath.Join(p.Path("s"), "agents", fmt.Sprint(pid), "stderr.log")); got != "one\ntwo\n" {
		t.Errorf("the log says %q", got)
	}
}

// A second signal to the daemon ends the grace period of its agents.
func TestSecondSignalEndsTheGrace(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	testkit.WriteFile(t, p.Path("config.toml"), strings.Replace(settings, `grace = "300ms"`, `grace = "1h"`, 1))
	daemon := p.launch(t)
	c := p.dial(t)
	own := c.awaitPID(t, c.spawn(t, allowAll, "stubborn"), "own")
	c.close()
	daemon.Signal(t, syscall.SIGTERM)
	testkit.Eventually(t, "the daemon shuts down", func() bool { return strings.Contains(daemon.Output(), "shutting down") })
	daemon.Stop(t) // sends another signal
	if testkit.Alive(own) {
		t.Error("the agent outlived the daemon")
	}
	testkit.WriteFile(t, p.Path("config.toml"), settings)
	p.launch(t)
	if d := p.dial(t).get(t, 1); d.reason() != "shutdown" || number(d.Exit.Signal) != int64(syscall.SIGKILL) {
		t.Errorf("the agent ended as %+v", d.Exit)
	}
}
