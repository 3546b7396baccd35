package hosts_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// TestApproval: a rule requires an approval before the tools of a host, through both doors. If the person at the terminal
// approves, the call continues; if the person refuses, the host gets the reason.
func TestApproval(t *testing.T) {
	t.Parallel()
	for _, h := range both() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			testkit.Must(t, errors.Join(os.MkdirAll(p.Path("home/.config/pwos"), 0o700), os.WriteFile(p.Path("home/.config/pwos/policy.cedar"), []byte(`
@id("writes") @ask("30m") forbid(principal, action == Syscall::"Memory.Set", resource);
@id("commands") @ask("30m") forbid(principal, action == Syscall::"Host.ToolUse", resource) when {context.args.tool == "Bash"};
`), 0o600)))
			p.run("pwos", "hook", "install", h.name)
			p.run("pwos", "mcp", "install", h.name, "--allow", "Memory.*,Host.ToolUse")
			p.run("pwos", "spawn", h.name, "--allow", "Memory.*,Host.ToolUse")
			m := newModel(
				t,
				step{tool: "Memory_Set", input: object{"key": "a", "value": 1}},
				shell(h.name, "touch approved"),
				step{tool: "Memory_Set", input: object{"key": "b", "value": 1}},
				shell(h.name, "touch refused"),
			)
			ctx, leave := context.WithCancel(context.Background())
			person := p.command(ctx, "pwos", "approvals", "-f")
			out, err := person.StdoutPipe()
			testkit.Must(t, errors.Join(err, person.Start()))
			done := make(chan struct{})
			go func() {
				defer close(done)
				for lines := bufio.NewScanner(out); lines.Scan(); {
					s, err := schema.TypeOf[schema.ApprovalState]().Decode(lines.Bytes())
					if err != nil {
						t.Error(err)
						return
					}
					q := s.(*schema.ApprovalState)
					answer := []string{"approve", q.ID}
					if strings.Contains(string(q.Data), "refused") || strings.Contains(string(q.Data), `"b"`) {
						answer = []string{"refuse", q.ID, "--why", "a person says no"}
					}
					if q.State == schema.ApprovalWaiting {
						if out, err := p.try("pwos", answer...); err != nil {
							t.Errorf("%q: %v\n%s", answer, err, out)
						}
					}
				}
			}()
			said := h.run(p, m)
			leave()
			<-done
			_ = person.Wait() // the test has ended it
			m.expect(said, "success", "", "a person says no", "a person says no")
			for name, want := range map[string]bool{"approved": true, "refused": false} {
				if _, err := os.Stat(p.Path("project/" + name)); (err == nil) != want {
					t.Errorf("%s was made: %t\n%s", name, err == nil, said)
				}
			}
			if got := p.run("pwos", "approvals", "--all"); strings.Count(got, `"state":"used"`) != 2 || strings.Count(got, `"state":"refused"`) != 2 {
				t.Errorf("approvals: %s", got)
			}
		})
	}
}
