package hook_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/door/hook"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

var (
	claude   = hook.Dialect{Failures: true}
	dialects = map[string]hook.Dialect{"claude": claude, "copilot": {Server: "pwos-", JSON: true}}
)

// TestRead checks the input that Read returns, and the names of MCP tools.
func TestRead(t *testing.T) {
	t.Parallel()
	q, err := hook.Read("claude", claude, strings.NewReader(`{"session_id":"s","tool_name":"mcp__my_fs__read_file","tool_input":{"a":[1, 2.50]},"cwd":"/"}`))
	if err != nil {
		t.Fatal(err)
	}
	in := q.Use
	if in.Host != "claude" || in.Session != "s" || in.Tool != "mcp/my_fs/read_file" || string(in.Input) != `{"a":[1, 2.50]}` || in.Cut != nil || in.Cwd != "/" {
		t.Errorf("read %+v", in)
	}
}

// TestReadRefuses checks that invalid hook input is an error.
func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "not one strict JSON value", "{": "not one strict JSON value", "[]": "not a JSON object", "{} {}": "not one strict JSON value",
		`{"session_id":"s"}`: "tool_name is missing", `{"session_id":1,"tool_name":"a","tool_input":1}`: "session_id is not a string",
		`{"session_id":"s","tool_name":"","tool_input":1}`: "tool_name is not a string", `{"session_id":"s","tool_name":"a"}`: "tool_input is missing",
		`{"session_id":"s","session_id":"t","tool_name":"a","tool_input":1}`:                                 "not one strict JSON value",
		`{"session_id":"s","tool_name":"a","tool_input":1,"mcp_context":1}`:                                  "mcp_context: it is not a JSON object",
		`{"session_id":"s","tool_name":"a","tool_input":1,"mcp_context":{"server_name":"a"}}`:                "mcp_context: tool_name is missing",
		`{"session_id":"s","tool_name":"a","tool_input":1,"mcp_context":{"server_name":"","tool_name":"b"}}`: "mcp_context: server_name is not a string",
		`{"hook_event_name":1}`: "hook_event_name is not a string", `{"hook_event_name":""}`: "hook_event_name is not a string",
		`{"hook_event_name":"PostToolUse","session_id":"s"}`: "tool_name is missing", `{"hook_event_name":"PostToolUse","tool_name":"a"}`: "session_id is missing",
		`{"hook_event_name":"PostToolUseFailure","session_id":"s","tool_name":[]}`: "tool_name is not a string", `{"hook_event_name":"PostToolBatch"}`: "session_id is missing",
	} {
		tells := strings.Contains(text, `"Post`)
		if q, err := hook.Read("claude", claude, strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) || (q != nil) != tells {
			t.Errorf("%q: %+v %v, want %q", text, q, err, want)
		}
	}
}

// TestReadBounds checks each bound at its value and one byte above.
func TestReadBounds(t *testing.T) {
	t.Parallel()
	const most, text, input = 32 << 20, 2 << 10, 10 << 10
	read := func(tool string, length int) ([]string, error) {
		question := `{"session_id":"s","tool_name":"Write","tool_input":` + tool + `}`
		q, err := hook.Read("claude", claude, strings.NewReader(question+strings.Repeat(" ", max(0, length-len(question)))))
		if err != nil {
			return nil, err
		}
		return q.Use.Cut, nil
	}
	if _, err := read("{}", most); err != nil {
		t.Errorf("a question of %d bytes: %v", most, err)
	}
	if _, err := read("{}", most+1); err == nil || !strings.Contains(err.Error(), "longer than 33554432 bytes") {
		t.Errorf("a question of %d bytes: %v", most+1, err)
	}
	quoted := func(length int) string { return `"` + strings.Repeat("x", length-2) + `"` }
	members := func(length int) string { // of less than text bytes each
		const each = 1000
		all := "{"
		for i := 0; len(all) < length-each-10; i++ {
			all += fmt.Sprintf(`"%d":%s,`, i, quoted(each))
		}
		return all + `"z":` + quoted(length-len(all)-5) + "}"
	}
	for name, tc := range map[string]struct{ tool, cut string }{
		"a text in full":       {quoted(text), ""},
		"a text too long":      {quoted(text + 1), "*"},
		"a member in full":     {`{"a":` + quoted(text) + `,"b":1}`, ""},
		"a member too long":    {`{"a":` + quoted(text+1) + `,"b":1}`, "a"},
		"all members":          {members(input), ""},
		"members, a byte more": {members(input + 1), "*"},
	} {
		cut, err := read(tc.tool, 0)
		if got := strings.Join(cut, " "); err != nil || got != tc.cut {
			t.Errorf("%s, %d bytes: cut %q, %v, want %q", name, len(tc.tool), got, err, tc.cut)
		}
	}
}

// TestShort checks that the recorded input of a tool fits a line, and that Cut names the members that were cut.
func TestShort(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 100_000)
	many := map[string]any{}
	for i := range 2000 {
		many[fmt.Sprint(i)] = strings.Repeat("x", 100)
	}
	for name, input := range map[string]any{
		"a text": long, "a member": map[string]any{"file_path": "/a", "content": long}, "a list": []string{long, long}, "many members": many,
		"a list in a member": map[string]any{"edits": []string{long}},
	} {
		question, err := json.Marshal(map[string]any{"session_id": "s", "tool_name": "Write", "tool_input": input})
		if err != nil {
			t.Fatal(err)
		}
		q, err := hook.Read("claude", claude, strings.NewReader(string(question)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		in := q.Use
		switch {
		case len(in.Input) > 12<<10 || !schema.Valid(in.Input):
			t.Errorf("%s: %d bytes are recorded", name, len(in.Input))
		case !strings.Contains(strings.ToLower(string(in.Input)), "sha"):
			t.Errorf("%s: recorded as %s", name, in.Input)
		}
		if name == "a member" && !strings.Contains(string(in.Input), `"file_path":"/a"`) {
			t.Errorf("%s: recorded as %s", name, in.Input)
		}
		cut := map[string]string{"a member": "content", "a list in a member": "edits"}[name]
		if got := strings.Join(in.Cut, " "); got != cmp.Or(cut, "*") {
			t.Errorf("%s: Cut has %s", name, got)
		}
	}
}

// TestEvents checks the calls that each event of a host stands for.
func TestEvents(t *testing.T) {
	t.Parallel()
	const (
		tool = `,"session_id":"s","tool_name":"Bash","tool_input":{"a": 1},"tool_use_id":"u"}`
		ends = ` ends {"host":"claude","session":"s","tool":"*"}`
	)
	long := strings.Repeat("x", 257)
	hashed := "sha256-FeuVpGLuIL2RpBWuLUrtNBKIGG3aorN5CPfVkvDD+F8="
	for _, tc := range []struct{ host, text, want string }{
		{"claude", `{"hook_event_name":"PreToolUse"` + tool, ` asks Bash begins {"host":"claude","session":"s","tool":"Bash","use":"u","input_digest":"sha256-+dhgKMbg1k4iUYb5astpM4ssWXZN95FiEH9cS7NNExA="}`},
		{"codex", `{"hook_event_name":"PreToolUse","agent_id":"a","session_id":"s","tool_name":"mcp__fs__read","tool_input":1}`, ` asks mcp/fs/read begins {"host":"codex","session":"s/a","tool":"mcp/fs/read","input_digest":"sha256-a4ayc/80/OGda4BO/1o/V0etpOqiLx1JwB5S3beHW0s="}`},
		{"claude", `{"hook_event_name":"PostToolUse"` + tool, ` ends {"host":"claude","session":"s","tool":"Bash","use":"u","failed":false}`},
		{"claude", `{"hook_event_name":"PostToolUseFailure"` + tool, ` ends {"host":"claude","session":"s","tool":"Bash","use":"u","failed":true}`},
		{"codex", `{"hook_event_name":"PostToolUse"` + tool, ` ends {"host":"codex","session":"s","tool":"Bash","use":"u"}`},
		{"claude", `{"hook_event_name":"PostToolUse","session_id":"s","agent_id":"a","tool_name":"mcp__fs__read","tool_use_id":7}`, ` ends {"host":"claude","session":"s/a","tool":"mcp/fs/read","failed":false}`},
		{"claude", `{"hook_event_name":"PostToolUse","session_id":"s","agent_id":[],"tool_name":"Bash","tool_use_id":"` + long + `"}`, ` ends {"host":"claude","session":"s","tool":"Bash","use":"` + hashed + `","failed":false}`},
		{"claude", `{"hook_event_name":"PostToolUse","session_id":"` + long + `","tool_name":"Bash"}`, ` ends {"host":"claude","session":"` + hashed + `","tool":"Bash","failed":false}`},
		{"claude", `{"hook_event_name":"PostToolBatch"` + tool, ends},
		{"claude", `{"hook_event_name":"UserPromptSubmit"` + tool, ends},
		{"claude", `{"hook_event_name":"SessionEnd"` + tool, ends},
		{"claude", `{"hook_event_name":"PreModelRequest"` + tool, ends},
		{"claude", `{"hook_event_name":"Interrupt"` + tool, ends},
		{"gemini", `{"hook_event_name":"BeforeTool","session_id":"s","tool_name":"glob","tool_input":1}`, ` asks glob begins {"host":"gemini","session":"s","tool":"glob","input_digest":"sha256-a4ayc/80/OGda4BO/1o/V0etpOqiLx1JwB5S3beHW0s="}`},
		{"gemini", `{"hook_event_name":"AfterTool","session_id":"s","tool_name":"mcp_a_b_c","mcp_context":{"server_name":"a_b","tool_name":"c"}}`, ` ends {"host":"gemini","session":"s","tool":"mcp/a_b/c"}`},
		{"gemini", `{"hook_event_name":"AfterTool","session_id":"s","tool_name":"mcp_a__b_c","mcp_context":{"server_name":"a__b","tool_name":"c"}}`, ` ends {"host":"gemini","session":"s","tool":"mcp__a__b__c"}`},
		{"gemini", `{"hook_event_name":"BeforeModel","session_id":"s"}`, ` ends {"host":"gemini","session":"s","tool":"*"}`},
		{"gemini", `{"hook_event_name":"BeforeAgent","session_id":"s","prompt":"p"}`, ` ends {"host":"gemini","session":"s","tool":"*"} prompt p`},
		{"qwen", `{"hook_event_name":"UserPromptSubmit","session_id":"s","prompt":""}`, ` ends {"host":"qwen","session":"s","tool":"*"}`},
		{"copilot", `{"hook_event_name":"PostToolUse","session_id":"s","tool_name":"pwos-Memory_Set"}`, ` ends {"host":"copilot","session":"s","tool":"mcp/pwos/Memory_Set"}`},
		{"copilot", `{"hook_event_name":"PostToolUse","session_id":"s","tool_name":"pwos"}`, ` ends {"host":"copilot","session":"s","tool":"pwos"}`},
		{"claude", `{"hook_event_name":"pretooluse"` + tool, ""},
		{"claude", `{"hook_event_name":"Notification"}`, ""},
		{"claude", `{"hook_event_name":"Stop"` + tool, ends},
	} {
		q, err := hook.Read(tc.host, dialects[tc.host], strings.NewReader(tc.text))
		if err != nil {
			t.Errorf("%s: %v", tc.text, err)
			continue
		}
		got := ""
		if q.Use != nil {
			begin, err := schema.StepBegin.Encode(q.Begin)
			testkit.Must(t, err)
			got = " asks " + q.Use.Tool + " begins " + string(begin)
		}
		if q.End != nil {
			end, err := schema.StepEnd.Encode(q.End)
			testkit.Must(t, err)
			got += " ends " + string(end)
		}
		if q.Prompt != nil {
			got += " prompt " + q.Prompt.Text
		}
		if got != tc.want {
			t.Errorf("%.200s: %s, want %s", tc.text, got, tc.want)
		}
	}
}
