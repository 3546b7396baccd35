package kernel_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
)

// TestOriginOfACall: metadata.origin selects the operator's origin for one call, and does not affect an agent's (ABI 6,
// 6.4).
func TestOriginOfACall(t *testing.T) {
	t.Parallel()
	p := assemble(t)
	operator := p.connect(0)
	pid := operator.spawn(0, `{"allowed_syscalls":["*"]}`)
	agent := p.connect(pid)
	const elsewhere = `,"origin":"https://b.example/"`
	if a := operator.askWith("Memory.Set", `{"key":"k","value":"b's"}`, elsewhere); a.Kind != "reply" {
		t.Fatalf("the operator in another origin: %s", a.Data)
	}
	operator.refused(404, "Memory.Get", `{"key":"k"}`)
	if a := operator.askWith("Memory.Get", `{"key":"k"}`, elsewhere); string(a.Data) != `"b's"` {
		t.Errorf("the operator reads %s in another origin", a.Data)
	}
	if a := agent.askWith("Memory.Get", `{"key":"k"}`, elsewhere); a.Kind != "error" {
		t.Errorf("an agent reads %s in another origin", a.Data)
	}
	agent.askWith("Memory.Set", `{"key":"k","value":"the agent's"}`, elsewhere)
	if a := operator.askWith("Memory.Get", `{"key":"k"}`, elsewhere); string(a.Data) != `"b's"` {
		t.Errorf("an agent wrote %s into another origin", a.Data)
	}
	agent.refused(422, "Syscall.Spawn", `{"child_agent_id":"c","origin":"https://b.example/"}`, "origin is not a member")
}

// TestAnswersShowNoCode: the kernel shows the contract of a syscall, never the location of its code (ABI 11).
func TestAnswersShowNoCode(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	for _, row := range schema.Syscalls() {
		if row.Internal {
			continue
		}
		answers := string(c.ask("Syscall.Describe", fmt.Sprintf(`{"name":%q}`, row.Type)).Data) +
			string(c.ask("Syscall.Describe", fmt.Sprintf(`{"name":%q}`, row.Type+"x")).Data)
		for _, code := range []string{".go", "github.com/", "promptware-os/pwos"} {
			if strings.Contains(answers, code) {
				t.Errorf("%s: the answer shows %q: %s", row.Type, code, answers)
			}
		}
	}
}

// TestCapabilityBeforeQuota: a call that lacks capability, quota and pool is refused for the first that it lacks, in the
// order of the pipeline (CAP 5).
func TestCapabilityBeforeQuota(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	pid := c.spawn(0, `{"allowed_syscalls":["Memory.*"],"resource_quotas":{"gpu":1}}`)
	data := fmt.Sprintf(`{"pid":%d,"resource_id":"gpu","amount":1000}`, pid)
	for _, step := range []struct {
		code         int
		says, amends string
	}{
		{403, "may not call Syscall.Alloc", `"allowed_syscalls":["SYS_ALLOC"],"resource_quotas":{"gpu":1}`},
		{429, "quota of gpu", `"allowed_syscalls":["SYS_ALLOC"],"resource_quotas":{"gpu":2000}`},
		{507, "exhausted", `"allowed_syscalls":[]`},
	} {
		c.refused(step.code, "Syscall.Alloc", data, step.says)
		c.call("Capability.Grant", fmt.Sprintf(`{"pid":%d,%s}`, pid, step.amends), nil)
	}
}
