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

// A program looks in descriptors for a way to be the operator. It inherits its channel and its log and nothing else, on
// neither of which it is anybody but itself, nor is a child that inherits them from it. And it gets hold of none that the
// daemon, its own parent, the operator or another agent have open: not by /proc, nor by asking the system for a copy.
//
// Who is not confined, because the operator said so or the system cannot, is held back by what the system has beside the
// sandbox, and no more: of a daemon that is user 0 an agent has no privileges, so that it gets nothing of the daemon's or the
// operator's, but of other agents all that they have. Then its descriptor says off, or none; and of none the kernel tells that
// agents can trace, and so become, whom they like.
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
		inherited, through []string // the log takes what is written to it, and answers nothing
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
					t.Errorf("it has %q, want %q", got, x.inherited)
				}
				if got := with(lines, "through "); !slices.Equal(got, x.through) {
					t.Errorf("beside its channel it got through to %q, want %q", got, x.through)
				}
				for _, want := range refusals(pid) {
					if !strings.Contains(said, "\n"+want) || !strings.Contains(said, "\nheir: "+want) {
						t.Errorf("it, and its child, were not told %q:\n%s", want, said)
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

// held fails unless a program got hold of no descriptor of another process, or the kernel says that it cannot refuse that.
func held(t *testing.T, level string, gaps, lines []string) {
	t.Helper()
	for _, who := range []string{"daemon: ", "parent: ", "operator: ", "victim: "} {
		outcomes := with(lines, who)
		if len(outcomes) < 4 || outcomes[0] == who+"has: 0, <nil>" {
			t.Errorf("it has not tried it all: %q", outcomes)
		}
		for _, outcome := range outcomes {
			if !strings.Contains(outcome, "GOT ") {
				continue
			}
			switch {
			case level == "off" && (who == "victim: " || os.Geteuid() != 0):
				// The operator has said that this program is not to be confined, and so the outcome of agents beside it.
				t.Logf("not confined, it got what is another's: %s", outcome)
			case level == "none" && strings.Contains(strings.Join(gaps, "\n"), "agents can trace, and so become, any process"):
			default:
				t.Errorf("confined by %s, it got what is another's, and %q do not say that it can: %s", level, gaps, outcome)
			}
		}
	}
}

// with are the lines that begin with a text.
func with(lines []string, begin string) (found []string) {
	for _, line := range lines {
		if strings.HasPrefix(line, begin) {
			found = append(found, line)
		}
	}
	return found
}
