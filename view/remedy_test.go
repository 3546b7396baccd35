package view_test

import (
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

// TestRemedy: a refused call has the narrowest additional grant that would allow it; none, if no grant would or the
// entry does not have the request.
func TestRemedy(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		typ     string
		id      fault.ID
		request string
		want    string
	}{
		{"Memory.Set", fault.CapabilityDenied, `{}`, `{"pid":7,"allowed_syscalls":["Memory.Set"],"mode":"add"}`},
		{"Crypto.Open", fault.CapabilityDenied, `{}`, `{"pid":7,"allowed_syscalls":["Crypto.Open"],"mode":"add"}`},
		{"Syscall.Call", fault.CapabilityDenied, `{"syscall":"mcp/fs/write"}`, `{"pid":7,"allowed_syscalls":["Call:mcp/fs/write"],"mode":"add"}`},
		{"Syscall.Call", fault.CapabilityDenied, `{"syscall":"os:///mcp/fs/write"}`, `{"pid":7,"allowed_syscalls":["Call:mcp/fs/write"],"mode":"add"}`},
		{"Syscall.Call", fault.CapabilityDenied, `{"syscall":"os/mcp/fs/write"}`, `{"pid":7,"allowed_syscalls":["Call:mcp/fs/write"],"mode":"add"}`},
		{"Syscall.Call", fault.CapabilityDenied, `{"syscall":"./calc"}`, ""},
		{"Syscall.Call", fault.CapabilityDenied, `{"syscall":"mcp/*"}`, ""},
		{"Syscall.Call", fault.CapabilityDenied, "", ""},
		{"Host.ToolUse", fault.CapabilityDenied, `{"host":"claude","session":"s","tool":"Bash","input":{}}`, `{"pid":7,"allowed_syscalls":["Tool:claude/Bash"],"mode":"add"}`},
		{"Http.Fetch", fault.HTTPForbidden, `{"url":"https://api.example.com/x"}`, `{"pid":7,"allowed_syscalls":["Http.Fetch"],"http":{"hosts":["api.example.com"]},"mode":"add"}`},
		{"Http.Fetch", fault.HTTPForbidden, `{"url":"http://api.example.com:8080/"}`, `{"pid":7,"allowed_syscalls":["Http.Fetch"],"http":{"hosts":["api.example.com:8080"],"plain":true},"mode":"add"}`},
		{"Http.Fetch", fault.HTTPForbidden, `{"url":"::"}`, ""},
		{"Net.Connect", fault.NetForbidden, `{"host":"a.example","port":443}`, `{"pid":7,"allowed_syscalls":["Http.Fetch"],"http":{"hosts":["a.example"]},"mode":"add"}`},
		{"Net.Connect", fault.NetForbidden, `{"host":"a.example","port":22}`, `{"pid":7,"allowed_syscalls":["Http.Fetch"],"http":{"hosts":["a.example:22"]},"mode":"add"}`},
		{"Net.Connect", fault.NetForbidden, `{"host":"a.example","refused":"it is no name"}`, ""},
		{"Process.Pause", fault.CapabilityDenied, `{}`, ""},
		{"Memory.Set", fault.PolicyDenied, `{}`, ""},
		{"Syscall.Alloc", fault.ResourceQuota, `{}`, ""},
	} {
		e := &view.Entry{AuditEntry: schema.AuditEntry{PID: 7, Type: tt.typ, ErrorID: string(tt.id), Request: schema.Value(tt.request)}}
		got := ""
		if grant := view.Remedy(e); grant != nil {
			got = string(testkit.Value(schema.Marshal(grant))(t))
		}
		if got != tt.want {
			t.Errorf("%s, %s, %s: %s, want %s", tt.typ, tt.id, tt.request, got, tt.want)
		}
		if e.PID = 0; view.Remedy(e) != nil {
			t.Errorf("%s: the operator needs no grant", tt.typ)
		}
	}
}

// TestParts: the parts of a refusal leave out the status.
func TestParts(t *testing.T) {
	t.Parallel()
	e := &view.Entry{AuditEntry: schema.AuditEntry{
		PID: 7, Type: "Memory.Set", Status: schema.StatusDenied, ErrorID: string(fault.CapabilityDenied), Error: "no\u202e", Request: schema.Value(`{"key":"a","value":1}`),
	}}
	object, outcome := e.Parts(nil)
	if object != "a (1 B)" || outcome != `no\u202e; grant it: pwos cap grant PID --add SYSCALL` {
		t.Errorf("%q, %q", object, outcome)
	}
}
