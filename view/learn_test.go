package view_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// call returns an entry of process 1; without an answer the call failed with 404.
func call(typ, answer string) schema.AuditEntry {
	e := schema.AuditEntry{PID: 1, Type: typ, Success: answer != "", Payload: schema.Value(answer)}
	if answer == "" {
		e.Code = 404
	}
	return e
}

// by returns an entry of another process, with that seq and request.
func by(pid, seq int64, e schema.AuditEntry, request string) schema.AuditEntry {
	e.PID, e.Seq, e.Request = pid, seq, schema.Value(request)
	return e
}

// failed returns an entry of a call that failed with the code.
func failed(code int64, typ string) schema.AuditEntry {
	e := call(typ, "")
	e.Code = code
	return e
}

// TestLearned: a call that was allowed needs a grant, whatever its outcome. Refused calls, calls that need no grant,
// and steps of the kernel do not.
func TestLearned(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		entries []schema.AuditEntry
		want    learning
	}{
		"nothing": {nil, learning{Allow: []string{"Syscall.Ping"}}},
		"the outcome of calls": {
			[]schema.AuditEntry{
				call("Syscall.Ping", `null`), call("Memory.Get", ``), failed(422, "Memory.List"), failed(409, "Memory.CompareAndSet"),
				failed(403, "Capability.Grant"), failed(403, "Memory.Delete"), call("Memory.Delete", `{}`), failed(403, "Syscall.Shutdown"),
				call("Process.NoteStart", `{}`), call("Memory.Unknown", `null`), call("Sum.Add", `null`), call("mcp/fs/read", `null`), failed(403, "Sum.Sub"),
			},
			learning{
				Allow:   []string{"Call:mcp/fs/read", "Memory.CompareAndSet", "Memory.Delete", "Memory.Get", "Memory.List", "Sum.Add"},
				Refused: map[string]int{"Capability.Grant": 1, "Memory.Delete": 1, "Sum.Sub": 1, "Syscall.Shutdown": 1},
				Denied:  map[string]int{"Call:mcp/fs/read": 1, "Memory.CompareAndSet": 1, "Memory.Delete": 1, "Memory.Get": 1, "Memory.List": 1, "Sum.Add": 1},
			},
		},
		"the maximum held at once, by all": {
			[]schema.AuditEntry{
				by(1, 1, call("Syscall.Alloc", `{"resource_id":"gpu","amount":2,"reserved":2}`), ``),
				by(2, 2, call("Syscall.Alloc", `{"resource_id":"gpu","amount":3,"reserved":3}`), ``),
				by(1, 3, call("Syscall.Release", `{"resource_id":"gpu","amount":1}`), ``),
				by(0, 4, call("Process.Exit", `{}`), `{"pids":[2],"reason":"over"}`),
				by(3, 5, call("Syscall.Alloc", `{"resource_id":"gpu","amount":3,"reserved":3}`), ``),
				by(3, 6, failed(429, "Syscall.Alloc"), ``),
			},
			learning{
				Allow: []string{"Syscall.Alloc", "Syscall.Release"}, Quotas: map[string]float64{"gpu": 5}, Refused: map[string]int{"Syscall.Alloc": 1},
				Denied: map[string]int{"Syscall.Release": 1},
			},
		},
		"what was granted to others": {
			[]schema.AuditEntry{
				by(1, 1, call("Syscall.Spawn", `{"child_pid":9,"child_agent_id":"x"}`),
					`{"child_agent_id":"x","capabilities":{"allowed_syscalls":["Memory.*","SYS_SEND_MSG","Syscall.Ping"],"resource_quotas":{"gpu":4},"http":{"hosts":["a.example"],"plain":true}}}`),
				by(9, 2, call("Memory.Set", `{}`), ``),
				by(1, 3, failed(403, "Syscall.Spawn"), `{"child_agent_id":"y","capabilities":{"allowed_syscalls":["Crypto.Open"]}}`),
				by(1, 4, call("Capability.Grant", `{"pid":9,"allowed_syscalls":["Ipc.Receive"],"resource_quotas":{},"expires_at_tick":null}`), ``),
			},
			learning{
				Allow:  []string{"Capability.Grant", "Ipc.Receive", "Memory.*", "Syscall.SendMsg", "Syscall.Spawn"},
				Quotas: map[string]float64{"gpu": 4}, Hosts: []string{"a.example"}, Plain: true, Children: []int64{9},
				Refused: map[string]int{"Syscall.Spawn": 1}, Denied: map[string]int{"Capability.Grant": 1, "Memory.Set": 1, "Syscall.Spawn": 1},
			},
		},
		"user space": {
			[]schema.AuditEntry{
				by(1, 1, call("Syscall.Call", `1`), `{"syscall":"os/tools/today"}`), by(1, 2, call("Syscall.Call", `1`), `{"syscall":"tools/today"}`),
				by(1, 3, failed(502, "Syscall.Call"), `{"syscall":"mcp/fs/read","args":[1]}`), by(1, 4, failed(403, "Syscall.Call"), `{"syscall":"tools/refused"}`),
			},
			learning{
				Allow: []string{"Call:mcp/fs/read", "Call:tools/today"}, Refused: map[string]int{"Syscall.Call": 1},
				Denied: map[string]int{"Call:mcp/fs/read": 1, "Call:tools/today": 2},
			},
		},
		"tools of hosts": {
			[]schema.AuditEntry{
				by(1, 1, call("Host.ToolUse", `{"decision":"allow","reason":"r"}`), `{"host":"claude","session":"s","tool":"Bash","input":{}}`),
				by(1, 2, call("Host.ToolUse", `{"decision":"allow","reason":"r"}`), `{"host":"claude","session":"s","tool":"mcp/fs/read","input":{}}`),
				by(1, 3, failed(403, "Host.ToolUse"), `{"host":"claude","session":"s","tool":"Edit","input":{}}`),
			},
			learning{
				Allow: []string{"Tool:claude/Bash", "Tool:claude/mcp/fs/read"}, Refused: map[string]int{"Tool:claude/Edit": 1},
				Denied: map[string]int{"Tool:claude/Bash": 1, "Tool:claude/mcp/fs/read": 1},
			},
		},
		"user space, relative to the caller": {
			[]schema.AuditEntry{by(1, 1, call("Syscall.Call", `1`), `{"syscall":"../tools/today"}`), by(1, 2, call("Syscall.Call", `1`), `{"syscall":"tools/today"}`)},
			learning{Allow: []string{"Syscall.Call"}, Denied: map[string]int{"Call:tools/today": 1, "Syscall.Call": 1}},
		},
		"servers": {
			[]schema.AuditEntry{
				by(1, 1, call("Http.Fetch", `{"status":200,"url":"https://c.example/x","via":["https://a.example:8443","http://b.example"]}`),
					`{"url":"https://A.example:8443/?q","headers":{"x":"pwenc:v1:zz"}}`),
				by(1, 2, failed(502, "Http.Fetch"), `{"url":"https://[2001:db8::1]:443/"}`),
				by(1, 3, failed(403, "Http.Fetch"), `{"url":"https://refused.example/"}`),
				by(1, 4, call("Net.Connect", `{}`), `{"host":"d.example","port":443}`),
				by(1, 5, call("Net.Connect", `{}`), `{"host":"d.example","port":22}`),
			},
			learning{
				Allow: []string{"Http.Fetch"}, Hosts: []string{"[2001:db8::1]", "a.example:8443", "b.example", "c.example", "d.example", "d.example:22"},
				Plain: true, Open: true, Refused: map[string]int{"Http.Fetch": 1}, Denied: map[string]int{"Http.Fetch": 2},
			},
		},
	} {
		got := learned(tt.entries, []string{"SYS_ALLOC"}, nil)
		if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// TestLearnedDenied: patterns match types, codes, domains, or everything except syscalls that a grant has to name.
func TestLearnedDenied(t *testing.T) {
	t.Parallel()
	for pattern, denies := range map[string]bool{
		"*": false, "Memory.*": false, "Memory.Set": false, "Memory.Get": true, "Mem.*": true, "SYS_ALLOC": true, "": true,
	} {
		got := learned([]schema.AuditEntry{call("Memory.Set", `{}`)}, []string{pattern}, nil)
		if len(got.Denied) > 0 != denies {
			t.Errorf("%q denies Memory.Set: %v", pattern, got.Denied)
		}
	}
	if got := learned([]schema.AuditEntry{call("Crypto.Open", `{}`)}, []string{"*", "Crypto.*"}, nil); len(got.Denied) != 1 {
		t.Errorf("patterns deny %v", got.Denied)
	}
	fetched := by(1, 1, call("Http.Fetch", `{}`), `{"url":"http://a.example:8080/"}`)
	for host, denies := range map[string]bool{
		"a.example:8080": false, "*:*": false, "*.example:*": false, "*.example:8080": false, "a.example": true, "*": true, "b.example:8080": true, "A.example:8080": false,
	} {
		got := learned([]schema.AuditEntry{fetched}, []string{"*"}, &schema.HTTPGrant{Hosts: []string{host}, Plain: true})
		if len(got.Denied) > 0 != denies {
			t.Errorf("the host %q denies %v", host, got.Denied)
		}
		if got := learned([]schema.AuditEntry{fetched}, []string{"*"}, &schema.HTTPGrant{Hosts: []string{host}}); len(got.Denied) == 0 {
			t.Errorf("a grant of only the host %q does not deny plain http", host)
		}
	}
}

// learning is the content of a Lesson.
type learning struct {
	Allow, Hosts    []string
	Quotas          map[string]float64
	Refused, Denied map[string]int
	Plain, Open     bool
	Children        []int64
}

// learned returns the lesson of entries, with the calls that a grant would deny.
func learned(entries []schema.AuditEntry, patterns []string, http *schema.HTTPGrant) (got learning) {
	l := view.NewLesson()
	for i := range entries {
		if entries[i].Type == "Process.Exit" {
			l.NoteExit(&entries[i])
		} else if child := l.Note(&entries[i]); child != 0 {
			got.Children = append(got.Children, child)
		}
	}
	servers := l.Servers()
	got.Allow, got.Quotas, got.Refused, got.Denied = l.Allow(), l.Peaks(), l.Refusals(), l.Denied(patterns, http)
	got.Hosts, got.Plain, got.Open = servers.Hosts, servers.Plain, servers.Open
	return got
}

// TestLearnedNames: a pattern that an agent has granted is one value of the flag, whatever it contains.
func TestLearnedNames(t *testing.T) {
	t.Parallel()
	l := view.NewLesson()
	e := call("Capability.Grant", `{"pid":2,"allowed_syscalls":["Call:tools/a,Crypto.Open"]}`)
	l.Note(&e)
	if got := l.CommandLine(nil, []string{"agent"}); got != `pwos run --allow '"Call:tools/a,Crypto.Open",Capability.Grant' -- agent` {
		t.Errorf("the grant is %s", got)
	}
}
