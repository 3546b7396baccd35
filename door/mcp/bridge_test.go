package mcp_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

type args map[string]any

// TestTools checks that exactly the syscalls that the process may call are offered, that queries are marked, and that a call cannot set
// the PID or other metadata.
func TestTools(t *testing.T) {
	t.Parallel()
	h := connect(t, newPlace(t).bridge("Memory.*", "Ipc.*"))
	tools := h.tools()
	for _, name := range []string{"Memory_Get", "Memory_Set", "Memory_CompareAndSet", "Ipc_Receive", "Syscall_Ping"} {
		if tools[name] == nil {
			t.Errorf("%s is not offered", name)
		}
	}
	for _, name := range []string{"Clock_Get", "Capability_Grant", "Ipc_Subscribe", "Process_Attach", "Syscall_Shutdown"} {
		if tools[name] != nil {
			t.Errorf("%s is offered", name)
		}
	}
	if !tools["Memory_Get"].Annotations.ReadOnlyHint || tools["Memory_Set"].Annotations.ReadOnlyHint {
		t.Error("the queries are not marked as such, or commands are")
	}
	members := tools["Memory_Set"].InputSchema.(map[string]any)["properties"].(map[string]any)
	if len(members) != 2 || members["key"] == nil || members["value"] == nil {
		t.Errorf("Memory_Set takes %v", members)
	}
	h.expect("Memory_Set", args{"key": "a", "value": []int{1, 2}}, `{"success":true}`)
	h.expect("Memory_Get", args{"key": "a"}, `[1,2]`)
	h.refused("Memory_Get", args{"key": "b"}, "Key not found", "memory.not_found")
	h.refused("Memory_Get", args{}, "key is missing")
	h.refused("Memory_Set", args{"key": "a", "value": strings.Repeat("x", 20_000)}, "exceeds maximum line length", "413")
	h.refused("Memory_Get", args{"key": 7}, "must be a string")
	h.refused("Memory_Get", args{"key": "a", "pid": 0}, "may not act as pid 0")
	if _, err := h.session.CallTool(testkit.Context(t), &sdk.CallToolParams{Name: "no such"}); err == nil {
		t.Error("a call of a tool that does not exist succeeded")
	}
}

// TestGrant checks that a refusal has the fix, whether or not the tool is offered, that a grant notifies the host and allows the call,
// and that a revoked tool stays offered.
func TestGrant(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	h := connect(t, p.bridge("Memory.Get"))
	set := args{"key": "a", "value": 1}
	h.refused("Memory_Set", set, `allow it too with "pwos cap grant 1 --add Memory.Set"`, "capability.denied, 403")
	p.operator("Capability.Grant", `{"pid":1,"allowed_syscalls":["Memory.Set"],"mode":"add"}`)
	h.changed()
	if h.tools()["Memory_Set"] == nil {
		t.Error("the granted tool is not offered")
	}
	h.expect("Memory_Set", set, `{"success":true}`)
	p.operator("Capability.Revoke", `{"pid":1}`)
	h.changed()
	if tool := h.tools()["Memory_Set"]; tool == nil || !strings.HasPrefix(tool.Description, "Not granted at the moment") {
		t.Errorf("after it was revoked: %+v", tool)
	}
	h.refused("Memory_Set", set, "pwos cap grant 1", "--add Memory.Set")
}

// TestQuiet checks that a bridge writes only its start and its calls to the journal while no grant changes.
func TestQuiet(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	h := connect(t, p.bridge("Memory.Get"))
	h.tools()
	h.tools()
	var types []string
	for _, part := range strings.Split(p.operator("Audit.Log", `{"pid":1}`), `"type":"`)[1:] {
		types = append(types, part[:strings.IndexByte(part, '"')])
	}
	if got := strings.Join(types, " "); got != "Syscall.List" {
		t.Errorf("the journal has %q", got)
	}
}

// TestSession checks that the process outlives a session and keeps its grants and memory.
func TestSession(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	h := connect(t, p.bridge("Memory.Set"))
	h.expect("Memory_Set", args{"key": "a", "value": 1}, `{"success":true}`)
	p.operator("Capability.Grant", `{"pid":1,"allowed_syscalls":["Memory.Get"],"mode":"add"}`)
	h.close()
	h = connect(t, p.bridge("Memory.Set"))
	h.expect("Memory_Get", args{"key": "a"}, "1")
	if got := p.operator("Process.List", `{}`); strings.Count(got, `"pid":`) != 1 {
		t.Errorf("there are %s", got)
	}
}

// TestRestart checks that the bridge reconnects to a restarted kernel, answers calls with an error meanwhile, and follows grants again.
func TestRestart(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	h := connect(t, p.bridge("Memory.*"))
	h.expect("Memory_Set", args{"key": "a", "value": 1}, `{"success":true}`)
	p.end()
	h.refused("Memory_Get", args{"key": "a"}, "the kernel is unreachable, and the call was not made", "call again")
	p.start()
	h.expect("Memory_Get", args{"key": "a"}, "1")
	p.operator("Capability.Grant", `{"pid":1,"allowed_syscalls":["Clock.Get"],"mode":"add"}`)
	h.changed()
	if h.tools()["Clock_Get"] == nil {
		t.Error("after the restart the host is not notified of a grant")
	}
}

// TestKilled checks that the bridge does not start a new process after the operator ended its process.
func TestKilled(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	h := connect(t, p.bridge("Memory.*"))
	p.operator("Syscall.Terminate", `{"target_pid":1}`)
	for { // until the bridge knows it, the error is the kernel's
		text, isError := h.call("Memory_List", args{})
		if !isError || !strings.Contains(text, "ended") {
			t.Fatalf("a call after the end of the process: %q", text)
		}
		if strings.Contains(text, "restart this MCP server") {
			break
		}
	}
	if got := p.operator("Process.List", `{"state":"READY"}`); got != `{"processes":[]}` {
		t.Errorf("there are %s", got)
	}
}

// TestResources checks reads of memory and record by URI: each shows only what the process may read.
func TestResources(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	h := connect(t, p.bridge("Memory.*", "Audit.Log"))
	read := func(uri string) string {
		t.Helper()
		out, err := h.session.ReadResource(testkit.Context(t), &sdk.ReadResourceParams{URI: uri})
		if err != nil {
			return "error: " + err.Error()
		}
		return out.Contents[0].Text
	}
	h.expect("Memory_Set", args{"key": "notes/a b", "value": "there"}, `{"success":true}`)
	list, err := h.session.ListResources(testkit.Context(t), nil)
	testkit.Must(t, err)
	if len(list.Resources) != 1 || list.Resources[0].URI != "pwos:///memory/notes/a%20b" {
		t.Errorf("listed %+v", list.Resources)
	}
	for prefix, want := range map[string]string{"no": "[notes/a b]", "other": "[]"} {
		done, err := h.session.Complete(testkit.Context(t), &sdk.CompleteParams{
			Ref: &sdk.CompleteReference{Type: "ref/resource", URI: "pwos:///memory/{+key}"}, Argument: sdk.CompleteParamsArgument{Name: "key", Value: prefix},
		})
		testkit.Must(t, err)
		if fmt.Sprint(done.Completion.Values) != want {
			t.Errorf("%q is completed to %q, want %s", prefix, done.Completion.Values, want)
		}
	}
	if got := read("pwos:///memory/notes/a%20b"); got != `"there"` {
		t.Errorf("memory: %s", got)
	}
	for _, uri := range []string{"pwos:///memory/none", "pwos:///audit/0", "pwos:///audit/x", "pwos:///audit/99999"} {
		if got := read(uri); !strings.Contains(got, "not found") {
			t.Errorf("%s: %s", uri, got)
		}
	}
	var own, foreign bool
	for seq := 1; seq < 12; seq++ {
		switch got := read(fmt.Sprint("pwos:///audit/", seq)); {
		case strings.Contains(got, `"pid":1,`):
			own = true
		case strings.Contains(got, `"pid":0,`):
			foreign = true
		}
	}
	if !own || foreign {
		t.Errorf("the process reads its own calls: %t, the operator's: %t", own, foreign)
	}
	p.operator("Capability.Revoke", `{"pid":1}`)
	if got := read("pwos:///memory/notes/a%20b"); !strings.Contains(got, "may not call Memory.Get") {
		t.Errorf("memory, revoked: %s", got)
	}
}

// TestNoKernel checks that ServeLines returns an error if there is no kernel.
func TestNoKernel(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.end()
	in, out := io.Pipe()
	defer func() { testkit.Must(t, errors.Join(in.Close(), out.Close())) }()
	if err := p.bridge().ServeLines(testkit.Context(t), in, out); !errors.Is(err, fault.DaemonUnreachable) && !errors.Is(err, fault.DaemonNotRunning) {
		t.Errorf("got %v", err)
	}
}

// TestGarbage checks that invalid lines are answered or dropped and do not end the session, and that requests before the end of the
// input are answered.
func TestGarbage(t *testing.T) {
	t.Parallel()
	b := newPlace(t).bridge("Memory.Get")
	var out strings.Builder
	in := strings.NewReader(strings.Join([]string{
		`garbage`,
		``,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"Memory_Get","arguments":[1]}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"Memory_Get","arguments":{"key":"a","key":"b"}}}`,
		`{"jsonrpc":"2.0","id":4,"method":"no/such"}`,
		"\xff",
		strings.Repeat("x", 17<<20),
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"Memory_Get","arguments":{"key":"a"}}}`,
		`{"jsonrpc":`,
	}, "\n"))
	testkit.Must(t, b.ServeLines(testkit.Context(t), in, &out))
	for _, want := range []string{`"id":1,"result"`, `"id":2,`, `"id":4,"error"`, `Key not found`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %s", want)
		}
	}
	if got := strings.Count(out.String(), `"code":-32700`); got != 4 {
		t.Errorf("%d lines are no JSON:\n%s", got, out.String())
	}
	for line := range strings.Lines(out.String()) {
		if !schema.Valid([]byte(line)) {
			t.Errorf("printed %q", line)
		}
	}
}
