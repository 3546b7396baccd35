package kernel_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

const askTools = `@id("tools") @ask("30m") forbid(principal, action == Syscall::"Host.ToolUse", resource);`

// TestApprovalBindsFiles: an approval of a command is one of the content of the file that it runs. If the content has changed, before the
// answer or after it, the call raises a new question.
func TestApprovalBindsFiles(t *testing.T) {
	t.Parallel()
	d := start(t, ruled(t, map[string]string{"policy.cedar": askTools}), waits(time.Millisecond))
	operator, agent := d.dial(t), d.dial(t)
	agent.attach("worker", `,"capabilities":{"allowed_syscalls":["Tool:claude/*"]}`)
	dir := testkit.Dir(t)
	script := filepath.Join(dir, "d.sh")
	write := func(text string) { t.Helper(); testkit.Must(t, os.WriteFile(script, []byte(text), 0o600)) }
	use := fmt.Sprintf(`{"host":"claude","session":"s","tool":"Bash","input":{"command":"sh d.sh"},"cwd":%q}`, dir)
	waiting := func(more string) schema.ApprovalState {
		t.Helper()
		agent.refused(425, "Host.ToolUse", use)
		var list schema.ApprovalListOutput
		operator.call("Approval.List", `{"state":"waiting"}`, &list)
		if len(list.Approvals) != 1 || !strings.Contains(string(list.Approvals[0].Data), more) {
			t.Fatalf("questions %+v, want one with %s", list.Approvals, more)
		}
		return list.Approvals[0]
	}
	write("echo good")
	q := waiting(`"files":[{"path":"` + script + `","digest":"sha256-`)
	operator.decide(q.ID, "approve", "")
	write("echo evil")
	second := waiting(`"digest":"sha256-`)
	if second.ID == q.ID || second.Digest == q.Digest {
		t.Errorf("the changed file is asked about as %s again", q.ID)
	}
	write("echo good")
	agent.call("Host.ToolUse", use, nil) // what was approved
	agent.refused(425, "Host.ToolUse", use)
	testkit.Must(t, os.Rename(script, script+".old"))
	agent.refused(425, "Host.ToolUse", use)
	var list schema.ApprovalListOutput
	operator.call("Approval.List", `{"state":"waiting"}`, &list)
	last := list.Approvals[len(list.Approvals)-1]
	if !strings.Contains(string(last.Data), `"unbound":"it names no file that the agent may write"`) {
		t.Errorf("without the file the question is %s", last.Data)
	}
	agent.refused(422, "Host.ToolUse", strings.TrimSuffix(use, "}")+`,"binds":{}}`, "is added by the kernel")
}

// TestApprovalBindsAgain: a file that changes while a call waits for its answer is not what was approved: the call waits for another
// answer.
func TestApprovalBindsAgain(t *testing.T) {
	t.Parallel()
	d := start(t, ruled(t, map[string]string{"policy.cedar": askTools}), waits(time.Hour))
	operator, follower, agent := d.dial(t), d.dial(t), d.dial(t)
	follower.call("Approval.Subscribe", `{}`, nil)
	agent.attach("worker", `,"capabilities":{"allowed_syscalls":["Tool:claude/*"]}`)
	dir := testkit.Dir(t)
	script := filepath.Join(dir, "d.sh")
	testkit.Must(t, os.WriteFile(script, []byte("echo good"), 0o600))
	agent.send("Host.ToolUse", fmt.Sprintf(`{"host":"claude","session":"s","tool":"Bash","input":{"command":"sh d.sh"},"cwd":%q}`, dir), "")
	follower.question("Approval.Requested", "q-1", "waiting")
	testkit.Must(t, os.WriteFile(script, []byte("echo evil"), 0o600))
	operator.decide("q-1", "approve", "")
	follower.question("Approval.Decided", "q-1", "approved")
	follower.question("Approval.Requested", "q-2", "waiting")
	operator.decide("q-2", "refuse", `,"why":"it has changed"`)
	if a := agent.next(); a.Kind != "error" || !strings.Contains(string(a.Data), "it has changed") {
		t.Errorf("the changed file ran: %s", a.Data)
	}
}
