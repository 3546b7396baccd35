package agents_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// A program that connects to the kernel's sockets, from any descendant of the agent, is that agent there: it may not name
// another process, nor do what only the operator may.
func TestNobodyBecomesTheOperator(t *testing.T) {
	t.Parallel()
	p, _ := start(t)
	c := p.dial(t)
	c.must(t, "command", "Syscall.Spawn", `{"child_agent_id":"victim"}`, nil) // pid 1
	for _, how := range []string{"itself", "child", "orphan"} {
		for _, sandbox := range []string{"default", "off"} {
			t.Run(how+", sandbox "+sandbox, func(t *testing.T) {
				pid := c.spawn(t, fmt.Sprintf(`,"sandbox":%q,"capabilities":{"allowed_syscalls":["Syscall.Terminate","Syscall.SendMsg"]}`, sandbox),
					"intrude", how, p.Socket())
				d := c.awaitGone(t, pid)
				log := testkit.ReadFile(t, filepath.Join(p.Path("s"), "agents", fmt.Sprint(pid), "stderr.log"))
				if d.reason() != "exited" || number(d.Exit.Code) != 0 {
					t.Errorf("ended as %+v\n%s", d.Exit, log)
				}
				said := testkit.ReadFile(t, filepath.Join(p.Path("s"), "agents", fmt.Sprint(pid), "work", "intruder"))
				for _, want := range refusals(pid) {
					if !strings.Contains(said, want) {
						t.Errorf("the intruder did not get %q:\n%s", want, said)
					}
				}
			})
		}
	}
	if d := c.get(t, 1); d.State != "READY" {
		t.Errorf("the victim is %s", d.State)
	}
}

// refusals returns the answers to an agent that tries to exceed its authority; pid 1 is another agent's.
func refusals(pid int64) []string {
	return []string{
		fmt.Sprintf("ping: pid %d\n", pid),
		"shutdown: 403 ",
		fmt.Sprintf("as the operator: 403 pid %d may not act as pid 0", pid),
		fmt.Sprintf("as another: 403 pid %d may not act as pid 1", pid),
		fmt.Sprintf("terminate another: 403 pid %d may not terminate pid 1", pid),
		fmt.Sprintf("approve: 403 pid %d may not call Approval.Decide: only the operator may", pid),
	}
}

// On another kernel, which hosts nothing, an agent is not the operator either: otherwise it could start itself there
// without restrictions.
func TestNobodyBecomesTheOperatorOfAnotherKernel(t *testing.T) {
	t.Parallel()
	p, _ := start(t)
	other, neighbour := start(t)
	c := p.dial(t)
	for refused, how := range []string{"itself", "orphan"} {
		pid := c.spawn(t, `,"sandbox":"off"`, "intrude", how, other.Socket()) // a sandbox would hide that socket
		testkit.Eventually(t, "the other kernel refuses "+how, func() bool {
			return strings.Count(neighbour.Output(), "process belongs to an agent of another host") > refused
		})
		c.must(t, "command", "Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, pid), nil)
		if said, err := os.ReadFile(filepath.Join(p.Path("s"), "agents", fmt.Sprint(pid), "work", "intruder")); err == nil {
			t.Errorf("%s, the answers were:\n%s", how, said)
		}
	}
	other.dial(t).must(t, "query", "Syscall.Ping", `{"payload":1}`, nil)
}

// On a system with the means, a confined agent writes nothing outside its directory, and signals only its own processes.
// The descriptor and the parameter block say what is enforced.
func TestSandbox(t *testing.T) {
	t.Parallel()
	p, daemon := start(t)
	c := p.dial(t)
	outside := "/usr/pwos-test-outside"
	pid := c.spawn(t, allowAll, "trespass", outside, fmt.Sprint(daemon.PID()))
	level := *c.get(t, pid).Sandbox
	var parameters struct {
		Sandbox string `json:"sandbox"`
	}
	c.must(t, "query", "Memory.Get", `{"key":"proc/cmdline"}`, &parameters)
	if parameters.Sandbox != level {
		t.Errorf("the descriptor says %s, the parameter block %s", level, parameters.Sandbox)
	}
	d := c.awaitGone(t, pid)
	if number(d.Exit.Code) != 0 {
		t.Fatalf("ended as %+v", d.Exit)
	}
	said := testkit.ReadFile(t, filepath.Join(p.Path("s"), "agents", fmt.Sprint(pid), "work", "trespasser"))
	if level == "none" {
		if !strings.Contains(daemon.Output(), "AGENTS ARE NOT CONFINED") {
			t.Error("the system cannot confine, and the log does not report that")
		}
		return
	}
	if _, err := os.Stat(outside); err == nil || !strings.Contains(said, "write: open "+outside+": ") {
		t.Errorf("writing outside: %s", said)
	}
	if !strings.Contains(said, "signal: operation not permitted") && !strings.Contains(said, "signal: no such process") && !strings.Contains(daemon.Output(), "agents can signal processes") {
		t.Errorf("signalling the daemon: %s", said)
	}
}

// A process that an agent spawns is confined at least as strictly as the agent.
func TestSpawnerGivesNoMoreThanItHas(t *testing.T) {
	t.Parallel()
	p, _ := start(t)
	c := p.dial(t)
	pid := c.spawn(t, allowAll+`,"limits":{"open_files":64}`, "loosen")
	if d := c.awaitGone(t, pid); number(d.Exit.Code) != 0 {
		t.Errorf("ended as %+v\n%s", d.Exit, testkit.ReadFile(t, filepath.Join(p.Path("s"), "agents", fmt.Sprint(pid), "stderr.log")))
	}
}
