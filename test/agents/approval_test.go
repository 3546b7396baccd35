package agents_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// An approval for an agent that the kernel confines is proof of a person's decision, since the agent cannot answer itself;
// for an agent that it does not confine it is advisory.
func TestApprovalOfHosted(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	testkit.Must(t, os.WriteFile(p.Path("policy.cedar"), []byte(`@id("asks") @ask("30m") forbid(principal, action == Syscall::"Memory.Set", resource);`), 0o600))
	p.launch(t)
	c := p.dial(t)
	for i, sandbox := range []string{"default", "off"} {
		pid := c.spawn(t, fmt.Sprintf(`,"sandbox":%q,"capabilities":{"allowed_syscalls":["*"]}`, sandbox), "ping")
		id := fmt.Sprint("q-", i+1)
		testkit.Eventually(t, "question "+id, func() bool {
			f, err := c.call("query", "Approval.List", `{"state":"waiting"}`)
			return err == nil && strings.Contains(string(f.Data), `"`+id+`"`)
		})
		level := *c.get(t, pid).Sandbox
		var out struct{ Advisory bool }
		c.must(t, "command", "Approval.Decide", fmt.Sprintf(`{"id":%q,"decision":"approve"}`, id), &out)
		if confined := level != "off" && level != "none"; out.Advisory == confined {
			t.Errorf("sandbox %s: advisory is %t", level, out.Advisory)
		}
		if d := c.awaitGone(t, pid); d.reason() != "exited" || number(d.Exit.Code) != 0 {
			t.Errorf("ended as %+v", d.Exit)
		}
	}
}
