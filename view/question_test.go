package view_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// TestQuestionOf: a question is a sentence with what it is about in full: no member of the input is left to the details but such as change
// nothing of it; and it says where it came from.
func TestQuestionOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		typ, data string
		pid       int64
		want      string // does: what | facts | the first of more
	}{
		{
			"Host.ToolUse", `{"host":"claude","session":"s","tool":"Bash","input":{"command":"git push\n\techo \u202e","description":"d"},"cwd":"/w"}`, 1,
			"run: git push,     echo \\u202e | in /w, tool Bash of claude, rule push | description: d",
		},
		{
			"Host.ToolUse", `{"host":"claude","session":"s","tool":"Edit","input":{"file_path":"/a","old_string":"1\n2","new_string":"3","replace_all":true}}`, 1,
			"edit: /a, - 1, - 2, + 3, replace_all: true | tool Edit of claude, rule push | ",
		},
		{
			"Host.ToolUse", `{"host":"claude","session":"s","tool":"MultiEdit","input":{"file_path":"/a","edits":[{"old_string":"1","new_string":"2\n3"},{"old_string":"4","new_string":"","replace_all":true}]}}`, 1,
			"edit: /a, - 1, + 2, + 3, - 4, + , replace_all: true | tool MultiEdit of claude, rule push | ",
		},
		{
			"Host.ToolUse", `{"host":"pi","session":"s","tool":"edit","input":{"path":"/a","edits":[1]}}`, 1,
			"use edit on: /a, edits: [1] | tool edit of pi, rule push | ",
		},
		{
			"Host.ToolUse", `{"host":"claude","session":"s","tool":"mcp/web/call","input":{"url":"https://a/","method":"DELETE","body":"x\ny","timeout":1}}`, 1,
			"fetch: https://a/, body: x,   y, method: DELETE, timeout: 1 | tool mcp/web/call of claude, rule push | ",
		},
		{
			"Host.ToolUse", `{"host":"claude","session":"s","tool":"mcp/git/push","input":{"path":"a","content":"x","repo":"me/shop","branch":"main"}}`, 1,
			"write: a, + x, branch: main, repo: me/shop | tool mcp/git/push of claude, rule push | ",
		},
		{
			"Host.ToolUse", `{"host":"claude","session":"s","tool":"mcp/sh/run","input":{"command":"ls","description":"d","env":{"A":"1"}}}`, 1,
			"run: ls, description: d, env: {\"A\":\"1\"} | tool mcp/sh/run of claude, rule push | ",
		},
		{
			"Host.ToolUse", `{"host":"claude","session":"s","tool":"Bash","input":{"command":"ls","timeout":1,"dangerouslyDisableSandbox":true}}`, 1,
			"run: ls, dangerouslyDisableSandbox: true | tool Bash of claude, rule push | timeout: 1",
		},
		{"Host.ToolUse", `{"host":"claude","session":"s","tool":"Write","input":{"file_path":"/a","content":"x\n"}}`, 1, "write: /a, + x | tool Write of claude, rule push | "},
		{"Host.ToolUse", `{"host":"claude","session":"s","tool":"Read","input":{"file_path":"/a","limit":3}}`, 1, "use Read on: /a, limit: 3 | tool Read of claude, rule push | "},
		{"Host.ToolUse", `{"host":"claude","session":"s","tool":"WebFetch","input":{"url":"https://a/"}}`, 1, "fetch: https://a/ | tool WebFetch of claude, rule push | "},
		{
			"Host.ToolUse", `{"host":"claude","session":"s","tool":"mcp/a/b","input":{"x":{"y":1},"text":"1\n2"},"cut":["text"]}`, 1,
			"use mcp/a/b:: text: 1,   2, x: {\"y\":1} | tool mcp/a/b of claude, cut this is not all: the host's input is too long, and the kernel got only the beginning of text, rule push | ",
		},
		{"Program.Exec", `{"path":"/usr/bin/git","argv":["git","push","a b"],"cwd":"/w","step":"claude:4"}`, 1, "run: git push 'a b' | as /usr/bin/git, in /w, from claude:4, rule push | "},
		{"Memory.Set", `{"key":"prod/a","value":{"b":[1]}}`, 1, "call Memory.Set: key: prod/a, value: {\"b\":[1]} | rule push | "},
		{
			"Syscall.Spawn", `{"child_agent_id":"c","command":["sh","-c","x y"]}`, 1,
			"start an agent:: sh -c 'x y', child_agent_id: c | rule push, file binds no content: the files that the program is, and runs, may change before it starts | ",
		},
		{"Step.Undo", `{"tree":"/w","paths":["a","b"],"count":4,"step":7}`, 0, "put back: a, b, and 2 more, in /w, set aside by claude:7 | of claude, rule push | "},
	} {
		s := &schema.ApprovalState{ApprovalRequestedInput: schema.ApprovalRequestedInput{ID: "q-1", Rule: "push", PID: tt.pid, Agent: "claude", Type: tt.typ, Data: schema.Value(tt.data), Digest: "d1"}}
		q := view.QuestionOf(s)
		var facts []string
		for _, f := range q.Facts {
			facts = append(facts, f[0]+" "+f[1])
		}
		first := q.More[0]
		if strings.HasPrefix(first, "q-1") {
			first = ""
		}
		if got := q.Does + ": " + strings.Join(q.What, ", ") + " | " + strings.Join(facts, ", ") + " | " + first; got != tt.want {
			t.Errorf("%s\n%s\nwant\n%s", tt.data, got, tt.want)
		}
		if slices.Contains(q.What, "d1") || !slices.Contains(q.Raw, "digest d1") {
			t.Errorf("what %q, raw %q", q.What, q.Raw)
		}
	}
}
