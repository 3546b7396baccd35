package agents_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// A program searches descriptors for a way to become the operator. It inherits only its channel and its log; on both it is
// only itself, and so is a child that inherits them. It gets none of the descriptors that the daemon, its parent, the
// operator or another agent have open: not through /proc, nor with a system call that copies one.
//
// An agent without a sandbox, because the operator said so or the system has no means, is limited only by other means of
// the system. If the daemon is user 0, an agent has no privileges, so it gets none of the daemon's or the operator's
// descriptors, but those of other agents. Its descriptor then says off, or none; for none the kernel reports that agents
// can trace, and so become, other processes.
func TestNobodyBecomesTheOperatorByADescriptor(t *testing.T) {
	t.Parallel()
	p, daemon := start(t)
	c := p.dial(t)
	victim := c.spawn(t, "", "idle") // pid 1
	others := []string{fmt.Sprint("daemon=", daemon.PID()), fmt.Sprint("operator=", os.Getpid()), fmt.Sprint("victim=", *c.awaitState(t, victim, "RUNNING").OSPID)}
	var parameters struct {
		Gaps []string `json:"sandbox_gaps"`
	}
	c.must(t, "query", "Memory.Get", `{"key":"proc/cmdline"}`, &parameters)
	for _, x := range []struct {
		channel            string
		inherited, through []string // the log accepts what is written to it, and answers nothing
	}{
		{
			"stdio",
			[]string{"inherited: 0 pipe", "inherited: 1 pipe", "inherited: 2 pipe"},
			[]string{"through 2: write <nil>, read bad file descriptor"},
		},
		{
			"fd3",
			[]string{"inherited: 0 /dev/null", "inherited: 1 pipe", "inherited: 2 pipe", "inherited: 3 socket"},
			[]string{
				"through 0: write bad file descriptor, read EOF", "through 1: write <nil>, read bad file descriptor",
				"through 2: write <nil>, read bad file descriptor",
			},
		},
	} {
		for _, sandbox := range []string{"default", "off"} {
			t.Run(x.channel+", sandbox "+sandbox, func(t *testing.T) {
				more := fmt.Sprintf(`,"channel":%q,"sandbox":%q,"capabilities":{"allowed_syscalls":["Syscall.Terminate","Syscall.SendMsg"]}`, x.channel, sandbox)
				pid := c.spawn(t, more, "pry", append([]string{"found"}, others...)...)
				d := c.awaitGone(t, pid)
				folder := filepath.Join(p.Path("s"), "agents", fmt.Sprint(pid))
				if d.reason() != "exited" || number(d.Exit.Code) != 0 {
					t.Fatalf("ended as %+v\n%s", d.Exit, testkit.ReadFile(t, filepath.Join(folder, "stderr.log")))
				}
				said := testkit.ReadFile(t, filepath.Join(folder, "work", "found"))
				lines := strings.Split(said, "\n")
				if got := with(lines, "inherited: "); !slices.Equal(got, x.inherited) {
					t.Errorf("the agent inherited %q, want %q", got, x.inherited)
				}
				if got := with(lines, "through "); !slices.Equal(got, x.through) {
					t.Errorf("through its descriptors the agent reached %q, want %q", got, x.through)
				}
				for _, want := range refusals(pid) {
					if !strings.Contains(said, "\n"+want) || !strings.Contains(said, "\nheir: "+want) {
						t.Errorf("the agent and its child did not both get %q:\n%s", want, said)
					}
				}
				held(t, *d.Sandbox, parameters.Gaps, lines)
			})
		}
	}
	if d := c.get(t, victim); d.State != "RUNNING" {
		t.Errorf("the victim is %s", d.State)
	}
}

// held fails the test unless a program got no descriptor of another process, or the kernel reports that it cannot prevent
// that.
func held(t *testing.T, level string, gaps, lines []string) {
	t.Helper()
	for _, who := range []string{"daemon: ", "parent: ", "operator: ", "victim: "} {
		outcomes := with(lines, who)
		if len(outcomes) < 4 || outcomes[0] == who+"has: 0, <nil>" {
			t.Errorf("the agent has not made all attempts: %q", outcomes)
		}
		for _, outcome := range outcomes {
			if !strings.Contains(outcome, "GOT ") {
				continue
			}
			switch {
			case level == "off" && (who == "victim: " || os.Geteuid() != 0):
				// The operator has said that this program is not confined, so it can reach agents too.
				t.Logf("without confinement, the agent got a descriptor of another process: %s", outcome)
			case level == "none" && strings.Contains(strings.Join(gaps, "\n"), "agents can trace, and so become, any process"):
			default:
				t.Errorf("confined by %s, the agent got a descriptor of another process, and the gaps %q do not allow that: %s", level, gaps, outcome)
			}
		}
	}
}

// with returns the lines that begin with a text.
func with(lines []string, begin string) (found []string) {
	for _, line := range lines {
		if strings.HasPrefix(line, begin) {
			found = append(found, line)
		}
	}
	return found
}
