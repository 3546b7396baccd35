package view_test

import (
	"testing"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// TestBinding checks what a question says of the files that its call uses: an approval must not seem to cover more than it does.
func TestBinding(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ typ, data, want string }{
		{"Host.ToolUse", `{"host":"claude","session":"s","tool":"Read","input":{"file_path":"a"}}`, ""},
		{
			"Host.ToolUse", `{"host":"claude","session":"s","tool":"Bash","input":{"command":"sh d.sh"},"binds":{"files":[{"path":"/p/d.sh","digest":"sha256-x","size":6}]}}`,
			"binds /p/d.sh as it is now",
		},
		{
			"Host.ToolUse", `{"host":"claude","session":"s","tool":"Bash","input":{"command":"make d"},"binds":{"files":[{"path":"/p/d","digest":"sha256-x","size":6}],"unbound":"make may run files"}}`,
			"binds /p/d as it is now, and nothing else: make may run files",
		},
		{
			"Host.ToolUse", `{"host":"claude","session":"s","tool":"Bash","input":{"command":"git push"},"binds":{"unbound":"it names no file that the agent may write"}}`,
			"binds no content: it names no file that the agent may write",
		},
		{"Syscall.Spawn", `{"child_agent_id":"a"}`, ""},
		{"Syscall.Spawn", `{"child_agent_id":"a","command":["sh","d.sh"]}`, "binds no content: the files that the program is, and runs, may change before it starts"},
		{"Syscall.Call", `{"syscall":"memory"}`, ""},
		{"Syscall.Call", `{"syscall":"./tools/calc"}`, "binds no content: the file of the tool may change before it runs"},
		{"Memory.Set", `{"key":"a","value":1}`, ""},
		{"Memory.Set", `{}`, ""},
		{"Nobody.Knows", `{}`, ""},
	} {
		s := &schema.ApprovalState{ApprovalRequestedInput: schema.ApprovalRequestedInput{Type: tt.typ, Data: schema.Value(tt.data)}}
		if got := view.Binding(s); got != tt.want {
			t.Errorf("%s %s: %q, want %q", tt.typ, tt.data, got, tt.want)
		}
	}
}
