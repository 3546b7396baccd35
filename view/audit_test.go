package view_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// did returns the entry of a successful call with that request and payload.
func did(typ, request, payload string) view.Entry {
	return view.Entry{AuditEntry: schema.AuditEntry{
		Success: true, Status: schema.StatusOK, PID: 7, Type: typ, Request: schema.Value(request), Payload: schema.Value(payload),
	}}
}

// refused returns the entry of a failed call.
func refused(typ, request, status, id, message string) view.Entry {
	e := did(typ, request, "")
	e.Success, e.Status, e.ErrorID, e.Error, e.Seq = false, status, id, schema.MaybeText(message), 12
	return e
}

// TestLine: a line describes the object of a call, in the terms of its syscall, and the outcome.
func TestLine(t *testing.T) {
	t.Parallel()
	names := view.Names{7: "reader", 8: "writer"}
	for _, tt := range []struct {
		entry view.Entry
		want  string
	}{
		{did("Http.Fetch", `{"url":"https://example.com/a"}`, `{"status":200,"headers":{},"size":29}`), "Http.Fetch GET https://example.com/a → 200, 29 B"},
		{did("Http.Fetch", `{"url":"https://example.com/a","method":"POST"}`, `{"status":204,"size":0}`), "Http.Fetch POST https://example.com/a → 204, 0 B"},
		{did("Memory.Set", `{"key":"notes/1","value":"twelve bytes"}`, `{"success":true}`), "Memory.Set notes/1 (12 B)"},
		{did("Memory.Set", `{"key":"notes/1","value":"[redacted]"}`, `{"success":true}`), "Memory.Set notes/1 (withheld)"},
		{did("Memory.Set", `{"key":"a","valueRef":{"scheme":"file","path":"/x"}}`, `{"success":true}`), "Memory.Set a (by reference)"},
		{did("Memory.Get", `{"key":"notes/1"}`, ""), "Memory.Get notes/1"},
		{did("Syscall.Spawn", `{"child_agent_id":"reader"}`, `{"child_pid":7,"child_agent_id":"reader"}`), "Syscall.Spawn reader → pid 7"},
		{did("Syscall.Spawn", `{"child_agent_id":"x","command":["sh","-c","echo a"]}`, `{"child_pid":9,"child_agent_id":"x"}`), "Syscall.Spawn x: sh -c 'echo a' → pid 9"},
		{did("Syscall.SendMsg", `{"receiver_pid":8,"intent":"greet","payload":{"a":1}}`, `{"receiver_pid":8,"status":"DELIVERED","msg_id":3}`), "Syscall.SendMsg to writer, greet (7 B) → message 3 DELIVERED"},
		{did("Ipc.Receive", `{}`, `{"messages":[]}`), "Ipc.Receive → nothing"},
		{did("Capability.Grant", `{"pid":8,"allowed_syscalls":["Memory.Get","Http.Fetch"],"mode":"add","http":{"hosts":["example.com"]}}`, `{}`), "Capability.Grant writer, add: Memory.Get, Http.Fetch, hosts example.com"},
		{did("Capability.Revoke", `{"pid":9}`, `{"pid":9,"revoked":false}`), "Capability.Revoke pid 9 → there was none"},
		{did("Process.Pause", `{"all":true}`, `{"processes":2}`), "Process.Pause all agents → 2 paused"},
		{did("Notes.Add", `{"name":"Notes.Add","kind":"command","data":{"title":"t","tags":["x"],"n":3}}`, `{"id":1}`), "Notes.Add title=t n=3 → 8 B"},
		{did("mcp/fs/read", `{"name":"mcp/fs/read","kind":"query","data":{"path":"/etc"}}`, ``), "mcp/fs/read path=/etc"},
		{did("Http.Fetch", "", `{"status":200,"size":12345}`), "Http.Fetch → 200, 12.3 kB"},
		{did("Memory.Set", `[]`, "{"), "Memory.Set"},
		{view.Entry{AuditEntry: schema.AuditEntry{Type: "Http.Fetch", Status: schema.StatusRunning}}, "Http.Fetch → running"},
		{view.Entry{AuditEntry: schema.AuditEntry{Type: "Http.Fetch", Status: schema.StatusUnknown}}, "Http.Fetch → unknown: its end could not be recorded"},
		{
			refused("Memory.Get", `{"key":"a"}`, schema.StatusFailed, "memory.not_found", "Key not found: a"),
			"Memory.Get a → failed (memory.not_found): Key not found: a",
		},
		{
			refused("Memory.Set", `{"key":"a"}`, schema.StatusDenied, "capability.denied", `pid 7 may not call Memory.Set: allow it too with "pwos cap grant 7 --add Memory.Set"`),
			`Memory.Set a → denied (capability.denied): pid 7 may not call Memory.Set: allow it too with "pwos cap grant 7 --add Memory.Set"`,
		},
		{
			refused("Memory.Set", `{"key":"a"}`, schema.StatusDenied, "policy.denied", "the rule r says no"),
			`Memory.Set a → denied (policy.denied): the rule r says no; "pwos policy allow --from 12" shows the exception that would allow it`,
		},
		{
			refused("Memory.Set", `{"key":"proc/x"}`, schema.StatusDenied, "memory.read_only", "proc/ is read-only"),
			"Memory.Set proc/x → denied (memory.read_only): proc/ is read-only; write to another key",
		},
	} {
		if got := tt.entry.Line(names, unpainted); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

// TestLineIsOneLine: text that an agent has chosen is escaped, and does not break the line.
func TestLineIsOneLine(t *testing.T) {
	t.Parallel()
	const evil = `\u001b[2J\n\r\u202e\u2028\u0000`
	names := view.Names{7: "\x1b]0;x\x07", 8: "b\n1"}
	entries := []view.Entry{
		refused("Memory.Set", `{"key":"`+evil+`"}`, schema.StatusFailed, "x\n\x1b", "a\x1b[2J\nb\u202e"),
		did("Odd\n\x1b.Type", `{"data":{"`+evil+`":"`+evil+`"}}`, ``),
	}
	for typ := range view.Summaries() {
		row, ok := schema.Lookup(typ)
		if !ok {
			t.Errorf("no syscall has the type %s", typ)
			continue
		}
		entries = append(entries, did(typ, hostile(row.Input(), evil), hostile(row.Output(), evil)))
	}
	for _, e := range entries {
		for _, cell := range e.Cells(names, unpainted) {
			if strings.ContainsAny(cell, "\x1b\n\r\u202e\u2028\x00\x07") {
				t.Errorf("%s: a cell is %q", e.Type, cell)
			}
		}
	}
}

// hostile returns an object of a type with text in all members of type string.
func hostile(typ *schema.Type, text string) string {
	members := []string{}
	for _, name := range namesOf(typ) {
		members = append(members, `"`+name+`":"`+text+`"`)
	}
	return "{" + strings.Join(members, ",") + "}"
}

// namesOf returns the names of a type's members.
func namesOf(typ *schema.Type) []string {
	described, _ := view.Members(typ.AppendJSONSchema(nil))
	properties, _ := view.Members(described["properties"])
	return slices.Sorted(maps.Keys(properties))
}

// TestSummariesNameMembers: summaries name only members of the syscall's types.
func TestSummariesNameMembers(t *testing.T) {
	t.Parallel()
	member := regexp.MustCompile(`\{(=?)([a-zA-Z_.]*)`)
	for typ, templates := range view.Summaries() {
		row, ok := schema.Lookup(typ)
		if !ok {
			t.Errorf("no syscall has the type %s", typ)
			continue
		}
		for _, template := range templates {
			for _, m := range member.FindAllStringSubmatch(template, -1) {
				of := row.Input()
				if m[1] == "=" {
					of = row.Output()
				}
				name, _, _ := strings.Cut(m[2], ".")
				if name != "" && !slices.Contains(namesOf(of), name) {
					t.Errorf("%s: the data types have no member %q", typ, m[0])
				}
			}
		}
	}
}
