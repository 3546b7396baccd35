package export_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/export"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestCursor: a cursor stores its position and is used by one export at a time. Another file is refused and not
// changed.
func TestCursor(t *testing.T) {
	t.Parallel()
	path := testkit.Dir(t) + "/cursor"
	c := testkit.Value(export.OpenCursor(path))(t)
	if c.At() != (export.Position{}) {
		t.Errorf("a new cursor is at %s", c.At())
	}
	if _, err := export.OpenCursor(path); !errors.Is(err, fault.ExportBusy) {
		t.Errorf("a second export: %v", err)
	}
	at := export.Position{Instance: "ab", Epoch: 2, Seq: 7}
	testkit.Must(t, c.Move(at))
	testkit.Must(t, c.Close())
	c = testkit.Value(export.OpenCursor(path))(t)
	if c.At() != at {
		t.Errorf("the cursor is at %s", c.At())
	}
	testkit.Must(t, c.Close())
	for _, text := range []string{"", "x", "{}", `{"instance":"a","epoch":0,"seq":1}`, `{"instance":"a","epoch":1,"seq":-1}`, `{"instance":"a","epoch":1,"seq":1}{`} {
		testkit.WriteFile(t, path, text)
		if _, err := export.OpenCursor(path); !errors.Is(err, fault.ExportUnreadable) {
			t.Errorf("%q: %v", text, err)
		}
		if testkit.ReadFile(t, path) != text {
			t.Errorf("%q was changed", text)
		}
	}
}

// TestOtherFiles: a file of other lines is refused and not changed; an incomplete last line is cut off.
func TestOtherFiles(t *testing.T) {
	t.Parallel()
	dir := testkit.Dir(t)
	for _, text := range []string{"hello", "hello\n", "{}\n", "{\"id\":\"x\"}\n", "{\"id\":\"a/0/1\"}\n", "{\"id\":1}\n", "\n", strings.Repeat("x", 200000) + "\n"} {
		path := dir + "/other"
		testkit.WriteFile(t, path, text)
		if _, err := export.OpenFile(path, export.JSONL); !errors.Is(err, fault.ExportUnreadable) {
			t.Errorf("%.20q: %v", text, err)
		}
		if testkit.ReadFile(t, path) != text {
			t.Errorf("%.20q was changed", text)
		}
	}
	if _, err := export.OpenFile(dir, export.JSONL); err == nil {
		t.Error("a directory was opened")
	}
	for text, want := range map[string]int64{
		"": 0, "{": 0, `{"id":"`: 0, `{"id":"a/1/`: 0,
		"{\"id\":\"a/1/5\"}\n":                  5,
		"{\"id\":\"a/1/5\"}\n{\"id\":\"a/1/6\"": 5,
		"{\"id\":\"a/1/5\",\"pad\":\"" + strings.Repeat("x", 200000) + "\"}\n" + strings.Repeat("y", 70000): 5,
	} {
		path := dir + "/torn"
		testkit.WriteFile(t, path, text)
		f := testkit.Value(export.OpenFile(path, export.JSONL))(t)
		if f.At().Seq != want {
			t.Errorf("%.30q is at %d, want %d", text, f.At().Seq, want)
		}
		if _, err := export.OpenFile(path, export.JSONL); !errors.Is(err, fault.ExportBusy) {
			t.Errorf("a second export: %v", err)
		}
		testkit.Must(t, f.Close())
		if left := testkit.ReadFile(t, path); !strings.HasPrefix(text, left) || left != "" && !strings.HasSuffix(left, "}\n") {
			t.Errorf("%.30q became %.30q", text, left)
		}
	}
	if _, err := export.OpenFile(dir+"/none/x", export.JSONL); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestWhichJournal: an export continues only with the journal that it has read. After a restore from an older copy it
// continues from the entry at which the copies diverge.
func TestWhichJournal(t *testing.T) {
	t.Parallel()
	epochs := []schema.Epoch{{Epoch: 1, FirstSeq: 1}, {Epoch: 2, FirstSeq: 101}}
	for at, want := range map[export.Position]struct {
		next int64
		id   fault.ID
	}{
		{}:                                     {},
		{Instance: "a", Epoch: 1, Seq: 50}:     {},
		{Instance: "a", Epoch: 1, Seq: 100}:    {},
		{Instance: "a", Epoch: 1, Seq: 150}:    {next: 101},
		{Instance: "a", Epoch: 1, Seq: 500}:    {next: 101},
		{Instance: "a", Epoch: 2, Seq: 150}:    {},
		{Instance: "a", Epoch: 2, Seq: 200}:    {id: fault.ExportOtherRecord},
		{Instance: "a", Epoch: 3, Seq: 150}:    {id: fault.ExportOtherRecord},
		{Instance: "b", Epoch: 1, Seq: 50}:     {id: fault.ExportOtherRecord},
		{Instance: "", Epoch: 1, Seq: 1 << 60}: {id: fault.ExportOtherRecord},
	} {
		next, err := export.Check("a", epochs, 200, at)
		if next != want.next || want.id == "" && err != nil || want.id != "" && !errors.Is(err, want.id) {
			t.Errorf("%s: %d, %v; want %+v", at, next, err, want)
		}
	}
	if _, err := export.Check("", nil, 200, export.Position{}); !errors.Is(err, fault.ExportUnreadable) {
		t.Errorf("a journal without an instance: %v", err)
	}
}

// TestFacts: a tool is named without its arguments.
func TestFacts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		entry schema.AuditEntry
		want  export.Facts
	}{
		{schema.AuditEntry{Type: "Syscall.Call", Request: schema.Value(`{"syscall":"os/tools/calc?k=secret","args":[1]}`)}, export.Facts{Tool: "os/tools/calc"}},
		{schema.AuditEntry{Type: "Syscall.Call", Request: schema.Value(`{"syscall":"mcp/fs/read_file"}`)}, export.Facts{Tool: "read_file", MCP: "fs"}},
		{schema.AuditEntry{Type: "Syscall.Call", Request: schema.Value(`{"syscall":5}`)}, export.Facts{}},
		{schema.AuditEntry{Type: "Syscall.Call"}, export.Facts{}},
		{schema.AuditEntry{Type: "Notes.Add"}, export.Facts{Tool: "Notes.Add"}},
		{schema.AuditEntry{Type: "Host.ToolUse", Request: schema.Value(`{"host":"claude","session":"s","tool":"Bash","input":{"command":"secret"}}`)}, export.Facts{Tool: "Bash", Host: "claude"}},
		{
			schema.AuditEntry{Type: "Net.Request", Payload: schema.Value(`{"upstream":"openai","method":"POST","path":"/v1","status":200,"sent":1,"received":2,"usage":{"model":"m","input_tokens":3,"output_tokens":4},"ended":"x"}`)},
			export.Facts{Upstream: "openai", Status: 200, Usage: &schema.NetUsage{Model: "m", Input: 3, Output: 4}},
		},
		{schema.AuditEntry{Type: "Net.Request", Request: schema.Value(`{"upstream":"openai","method":"POST","path":"/v1"}`)}, export.Facts{Upstream: "openai"}},
		{schema.AuditEntry{Type: "Net.Connect", Request: schema.Value(`{"host":"a.example","port":443}`)}, export.Facts{Server: "a.example", Port: 443}},
		{schema.AuditEntry{Type: "Memory.Set", Request: schema.Value(`{"key":"secret","value":1}`)}, export.Facts{}},
	} {
		if diff := cmp.Diff(tt.want, export.FactsOf(&tt.entry)); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", tt.entry.Type, tt.entry.Request, diff)
		}
	}
}
