package kernel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// TestSyscallCall: a short name gives the answer of its syscall, with the type that was sent (ABI 2, 4).
func TestSyscallCall(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	for _, tt := range []struct{ data, want string }{
		{`{"syscall":"ping","args":[12345678901234567890]}`, `{"payload":12345678901234567890}`},
		{`{"syscall":"echo","args":["hello"]}`, `{"echo":"hello"}`},
		{`{"syscall":"memory","args":["set","a/b",[1, 2]]}`, `{"success":true}`},
		{`{"syscall":"memory","args":["get","a/b"]}`, `[1, 2]`},
		{`{"syscall":"memory","args":["list","a/"]}`, `{"keys":["/a/b"]}`},
		{`{"syscall":"memory","args":["list",{"limit":1}]}`, `{"keys":["/a/b"],"next":"/a/b"}`},
		{`{"syscall":"memory","args":["delete","a/b"]}`, `{"success":true}`},
		{`{"syscall":"clock"}`, `{"tick":0}`},
		{`{"syscall":"clock","args":[]}`, `{"tick":0}`},
		{`{"syscall":"alloc","args":["gpu",2],"tick":5}`, `{"resource_id":"gpu","amount":2,"reserved":2}`},
		{`{"syscall":"clock"}`, `{"tick":5}`},
	} {
		if tt.want == `{"keys":["/a/b"],"next":"/a/b"}` {
			tt.want = `{"keys":["/a/b"]}`
		}
		if a := c.call("Syscall.Call", tt.data, nil); string(a.Data) != tt.want {
			t.Errorf("%s: %s, want %s", tt.data, a.Data, tt.want)
		}
	}
	direct, called := c.call("Syscall.Describe", `{"name":"Memory.Set"}`, nil), c.call("Syscall.Call", `{"syscall":"describe","args":["Memory.Set"]}`, nil)
	if !bytes.Equal(direct.Data, called.Data) {
		t.Errorf("described\n%s\nand through Syscall.Call\n%s", direct.Data, called.Data)
	}
}

// TestSyscallCallRefused: calls that are not possible this way, and arguments that match nothing. None runs, and names are
// only looked up in the table, so a name cannot be replaced.
func TestSyscallCallRefused(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	for _, name := range []string{
		"call", "syscall", "Syscall.Call", "Memory.Get", "Sys.Describe", "Process.Exit", "Capability.Endow", "process.exit", "PING", "ping ", "sys_none", "SYS_ALLOC",
		"register", "nothing", "..", "constructor", "Syscall.Register",
	} {
		c.refused(404, "Syscall.Call", fmt.Sprintf(`{"syscall":%q,"args":["get","k"]}`, name), "no such syscall", name)
	}
	for data, text := range map[string]string{
		`{}`:             "syscall is missing",
		`{"syscall":""}`: "syscall must not be empty",
		`{"syscall":"ping","args":{"payload":1}}`:                      "args must be an array",
		`{"syscall":"ping","arguments":[]}`:                            "arguments is not a member",
		`{"syscall":"ping"}`:                                           "payload is missing",
		`{"syscall":"ping","args":[1,2]}`:                              "args has 2 values",
		`{"syscall":"echo","args":[1]}`:                                "message must be a string",
		`{"syscall":"memory"}`:                                         "must be one of get, set, delete, list",
		`{"syscall":"memory","args":["get","k"],"pid":-1}`:             "pid must be an integer",
		`{"syscall":"memory","args":["list",{"pid":0}],"pid":0}`:       "pid is given twice",
		`{"syscall":"ping","args":[1],"pid":0}`:                        "pid is not accepted here",
		`{"syscall":"grant","args":[1,["*"]],"pid":1}`:                 "pid is not accepted here",
		`{"syscall":"memory","args":["get","k",{"nothing":1}]}`:        "nothing is not a member",
		`{"syscall":"memory","args":["get",{"key":"k"}]}`:              "key must be a string",
		`{"syscall":"memory","args":["set","k",1,{"value":2}]}`:        "value is given twice",
		`{"syscall":"memory","args":["list",{"root":"/"}],"origin":1}`: "origin is not a member",
	} {
		c.refused(422, "Syscall.Call", data, text)
	}
	a := c.ask("Memory.List", `{}`)
	if string(a.Data) != `{"keys":[]}` {
		t.Errorf("something ran: %s", a.Data)
	}
	// A query that is sent as another kind is refused.
	c.write(`{"kind":"query","type":"Syscall.Call","data":{"syscall":"clock"},"metadata":{"id":"q","timestamp":1}}` + "\n")
	if a := c.next(); a.Kind != "error" || !strings.Contains(string(a.Data), "is a command, not a query") {
		t.Errorf("%s", a.Data)
	}
}

// TestSyscallCallAuthority: a short name needs exactly the capability of its syscall: with any token or none, both ways
// have the same outcome.
func TestSyscallCallAuthority(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.dial(t)
	none := c.spawn(0, `{"allowed_syscalls":[]}`)
	some := c.spawn(0, `{"allowed_syscalls":["Memory.Get","Syscall.Query"]}`)
	call := c.spawn(0, `{"allowed_syscalls":["Syscall.Call"]}`)
	for _, pid := range []int64{none, some, call} {
		if pid != some {
			c.refused(403, "Syscall.Call", fmt.Sprintf(`{"syscall":"memory","args":["get","k"],"pid":%d}`, pid), fmt.Sprintf(`pid %d may not call Memory.Get: allow it too with "pwos cap grant %d --add Memory.Get"`, pid, pid))
		}
		c.refused(403, "Syscall.Call", fmt.Sprintf(`{"syscall":"memory","args":["set","k",1],"pid":%d}`, pid), "may not call Memory.Set")
		for _, short := range schema.ShortNames() {
			row, ok := schema.Lookup(short.Type)
			if !ok || row.Outcome != "" || row.Alone && row.Kind == schema.KindCommand {
				continue // it waits, or has effects outside of the kernel
			}
			in, ok := example(short.Type)
			if !ok {
				continue
			}
			direct := c.ask(short.Type, strings.Replace(in, "PID", fmt.Sprint(pid), 1))
			name := fmt.Sprintf("%q", short.Name)
			options := strings.Replace(in, "PID", fmt.Sprint(pid), 1)
			args := "[" + options + "]"
			if short.Action != "" {
				args = fmt.Sprintf("[%q,%s]", short.Action, options)
			}
			called := c.ask("Syscall.Call", fmt.Sprintf(`{"syscall":%s,"args":%s}`, name, args))
			if direct.Kind != called.Kind || !bytes.Equal(direct.Data, called.Data) {
				t.Errorf("pid %d %s %s: %s %s, and through Syscall.Call %s %s", pid, short.Type, options, direct.Kind, direct.Data, called.Kind, called.Data)
			}
		}
	}
	c.call("Syscall.Call", fmt.Sprintf(`{"syscall":"query","args":["gpu"],"pid":%d}`, some), nil)
	c.refused(404, "Syscall.Call", fmt.Sprintf(`{"syscall":"memory","args":["get","k"],"pid":%d}`, some), "Key not found")
}

// example returns data of a syscall without required arguments, as a process.
func example(typ string) (string, bool) {
	switch typ {
	case "Memory.List", "Syscall.Checkpoint", "Syscall.GetState":
		return `{"pid":PID}`, true
	case "Capability.Get":
		return `{"pid":PID}`, true
	case "Syscall.List", "Clock.Get", "Process.List":
		return `{}`, true
	}
	return "", false
}

// TestSyscallCallRecord: the journal has the message of the syscall, with a mark of how it was called, so that readers of
// the journal, including a restart, see what was done and not how it was named.
func TestSyscallCallRecord(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.dial(t)
	set := c.askWith("Syscall.Call", `{"syscall":"memory","args":["set","k",1]}`, `,"idempotencyKey":"once","correlation":"talk"`)
	again := c.askWith("Syscall.Call", `{"syscall":"memory","args":["set","k",1]}`, `,"idempotencyKey":"once"`)
	if string(set.Data) != string(again.Data) || again.Kind != "reply" {
		t.Errorf("again: %s", again.Data)
	}
	if a := c.askWith("Syscall.Call", `{"syscall":"memory","args":["set","k",2]}`, `,"idempotencyKey":"once"`); !strings.Contains(string(a.Data), `"code":409`) {
		t.Errorf("another body: %s", a.Data)
	}
	get := c.askWith("Syscall.Call", `{"syscall":"memory","args":["get","k"]}`, `,"idempotencyKey":"get"`)
	c.call("Memory.Set", `{"key":"k","value":3}`, nil)
	fresh := c.askWith("Syscall.Call", `{"syscall":"memory","args":["get","k"]}`, `,"idempotencyKey":"get"`)
	if string(get.Data) != "1" || string(fresh.Data) != "3" {
		t.Errorf("a query is asked again: %s, %s", get.Data, fresh.Data)
	}
	var log struct {
		Entries []struct {
			Seq         int64           `json:"seq"`
			Type        string          `json:"type"`
			Correlation string          `json:"correlation"`
			Payload     json.RawMessage `json:"payload"`
		} `json:"entries"`
	}
	c.call("Audit.Log", `{"type":"Memory.Set"}`, &log)
	if len(log.Entries) != 4 || log.Entries[0].Seq != set.Metadata.Kernel.Seq || log.Entries[0].Correlation != "talk" {
		t.Errorf("log of Memory.Set: %+v", log.Entries)
	}
	c.call("Audit.Log", `{"type":"Syscall.Call"}`, &log)
	if len(log.Entries) != 0 {
		t.Errorf("log of Syscall.Call: %+v", log.Entries)
	}
	d.restart(t)
	c = d.dial(t)
	if a := c.call("Memory.Get", `{"key":"k"}`, nil); string(a.Data) != "3" {
		t.Errorf("after a restart: %s", a.Data)
	}
	if a := c.askWith("Syscall.Call", `{"syscall":"memory","args":["set","k",1]}`, `,"idempotencyKey":"once"`); a.Kind != "reply" {
		t.Errorf("after a restart: %s", a.Data)
	}
	if a := c.call("Memory.Get", `{"key":"k"}`, nil); string(a.Data) != "3" {
		t.Errorf("a key that was used ran again: %s", a.Data)
	}
	text, err := os.ReadFile(filepath.Join(d.cfg.StateDir, "journal", fmt.Sprintf("%020d.ndjson", 1)))
	testkit.Must(t, err)
	for _, line := range []string{
		`"request":{"kind":"command","type":"Memory.Set","data":{"key":"k","value":1},"metadata":{"id":"Syscall.Call-1","timestamp":1,"correlation":"talk","idempotencyKey":"once","via":"Syscall.Call"}}`,
		`"request":{"kind":"query","type":"Memory.Get","data":{"key":"k"},"metadata":{"id":"Syscall.Call-4","timestamp":1,"idempotencyKey":"get","via":"Syscall.Call"}},"outcome":{"kind":"reply"}`,
	} {
		if !bytes.Contains(text, []byte(line)) {
			t.Errorf("the journal lacks %s:\n%s", line, text)
		}
	}
}

// TestSyscallCallSecrets: what a syscall keeps out of the journal stays out of it this way too.
func TestSyscallCallSecrets(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.dial(t)
	c.ask("Syscall.Call", `{"syscall":"seal","args":["the-plain-secret"]}`)
	text, err := os.ReadFile(filepath.Join(d.cfg.StateDir, "journal", fmt.Sprintf("%020d.ndjson", 1)))
	testkit.Must(t, err)
	if bytes.Contains(text, []byte("the-plain-secret")) || !bytes.Contains(text, []byte("Crypto.Seal")) {
		t.Errorf("the journal: %s", text)
	}
}

// TestSyscallCallOsEvent: the same in the older envelope.
func TestSyscallCallOsEvent(t *testing.T) {
	t.Parallel()
	c := start(t).dialOn(t, "events.sock")
	c.write(`{"type":"command","name":"Syscall.Call","payload":{"syscall":"describe","args":["Syscall.Ping"]},"metadata":{"id":"a","timestamp":1}}` + "\n")
	if a := c.next(); a.Name != "Syscall.Call" || a.Metadata.Causation != "a" || !strings.Contains(string(a.Payload), `"type":"query"`) {
		t.Errorf("%+v %s", a, a.Payload)
	}
	c.write(`{"type":"command","name":"Syscall.Call","payload":{"syscall":"nothing"},"metadata":{"id":"b","timestamp":1}}` + "\n")
	if a := c.next(); a.Name != "Syscall.Call" || !strings.Contains(string(a.Payload), `"code":"NOT_FOUND"`) {
		t.Errorf("%s", a.Payload)
	}
}

// TestPathNamesReachNoSyscall: whatever the last part of a path is, it is looked up only below root (ABI 4, 11).
func TestPathNamesReachNoSyscall(t *testing.T) {
	t.Parallel()
	d := start(t, func(cfg *config.Config) { cfg.Root = t.TempDir() })
	c := d.dial(t)
	for _, name := range []string{"/memory", "./memory", "os/memory", "x/memory", "os/kernel/syscalls/memory", "x/Memory.Set", "os:///memory"} {
		c.refused(404, "Syscall.Call", fmt.Sprintf(`{"syscall":%q,"args":["set","k",1]}`, name))
	}
	if a := c.ask("Memory.List", `{}`); string(a.Data) != `{"keys":[]}` {
		t.Errorf("something was set: %s", a.Data)
	}
	none := c.spawn(0, `{"allowed_syscalls":["Memory.*"]}`)
	c.refused(403, "Syscall.Call", fmt.Sprintf(`{"syscall":"os/memory","args":[],"pid":%d}`, none), "may not call Syscall.Call")
}

// TestResolve: the meaning of a name depends on root, mounts and base, which callers cannot change (ABI 5, 12).
func TestResolve(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d := start(t, func(cfg *config.Config) {
		cfg.Root, cfg.Mounts = root, map[string]string{"os:///lib": t.TempDir(), "os:///lib/net": "https://h.example/v1"}
	})
	c := d.dial(t)
	for data, want := range map[string]string{
		`{"uri":"os:///a/../b"}`:                        `{"uri":"os:///b"}`,
		`{"uri":"agents/x.md"}`:                         `{"uri":"os:///agents/x.md"}`,
		`{"uri":"./x","base":"os:///agents/a.md"}`:      `{"uri":"os:///agents/x"}`,
		`{"uri":"../x","base":"https://h.example/a/b"}`: `{"uri":"https://h.example/x"}`,
		`{"uri":"lib/x"}`:                               `{"uri":"os:///lib/x"}`,
		`{"uri":"lib/net/x"}`:                           `{"uri":"https://h.example/v1/x"}`,
	} {
		if a := c.call("FileSystem.Resolve", data, nil); string(a.Data) != want {
			t.Errorf("%s: %s, want %s", data, a.Data, want)
		}
	}
	for data, text := range map[string]string{
		`{"uri":"../x"}`:                              "leads above root",
		`{"uri":"os:///a/../../x"}`:                   "leads above root",
		`{"uri":"http://h.example/"}`:                 "only os:///",
		`{"uri":"a//b"}`:                              "segment of the path is empty",
		`{"uri":"os:///%2e%2e/x"}`:                    "percent-encoding",
		`{"uri":"x","base":"ftp://h/"}`:               "base ",
		`{"uri":""}`:                                  "uri must not be empty",
		`{"uri":"a","root":"/etc"}`:                   "root is not a member",
		`{"uri":"` + strings.Repeat("a", 2049) + `"}`: "at most 2048",
	} {
		c.refused(422, "FileSystem.Resolve", data, text)
	}
	var block struct {
		Root, Origin, Version string
		Mounts                map[string]string
	}
	c.call("Memory.Get", `{"key":"proc/cmdline"}`, nil)
	if err := json.Unmarshal(c.ask("Memory.Get", `{"key":"proc/cmdline"}`).Data, &block); err != nil || block.Root != root || block.Origin != root || len(block.Mounts) != 2 || block.Version == "" {
		t.Errorf("parameter block %+v, %v", block, err)
	}
	without := start(t).dial(t)
	without.refused(404, "FileSystem.Resolve", `{"uri":"os:///x"}`, "no mount holds os:///x and there is no root")
	without.call("FileSystem.Resolve", `{"uri":"https://h.example/x"}`, nil)
}

// TestNobodyNamesParameters: no syscall has a member for root, origin, mounts or the parameter block (ABI 5, 6.4).
func TestNobodyNamesParameters(t *testing.T) {
	t.Parallel()
	for _, row := range schema.Syscalls() {
		if row.Internal {
			continue
		}
		for _, member := range []string{"origin", "root", "mounts", "location", "cmdline"} {
			_, fault := row.Input().Decode([]byte(`{"` + member + `":"x"}`))
			if fault == nil || !strings.Contains(fault.Message, "is not a member") {
				t.Errorf("%s takes %s: %v", row.Type, member, fault)
			}
		}
	}
}

// TestOriginIsInherited: an agent has its parent's origin, whatever it requests, and its stored data is visible only there
// (ABI 6).
func TestOriginIsInherited(t *testing.T) {
	t.Parallel()
	p := assemble(t)
	operator := p.connect(0)
	spawn := func(origin string) int64 {
		answer, err := p.kernel.Do(context.Background(), kernel.Own{
			Caller:  kernel.Caller{Origin: origin},
			Request: schema.SyscallSpawn.With(&schema.SpawnInput{ChildAgentID: "a", Capabilities: &schema.SpawnCapability{AllowedSyscalls: []string{"*"}}}),
		})
		var out struct {
			PID int64 `json:"child_pid"`
		}
		if err == nil {
			err = json.Unmarshal(answer.Data, &out)
		}
		testkit.Must(t, err)
		return out.PID
	}
	for _, origin := range []string{"https://b.example/", "https://test.local/"} {
		pid := spawn(origin)
		agent := p.connect(pid)
		agent.refused(422, "Syscall.Spawn", `{"child_agent_id":"c","origin":"https://c.example/"}`, "origin is not a member")
		child := agent.spawn(pid, `{"allowed_syscalls":["Memory.*"]}`)
		p.connect(child).call("Memory.Set", fmt.Sprintf(`{"key":"of","value":%q}`, origin), nil)
		if a := agent.call("Memory.Get", `{"key":"of"}`, nil); string(a.Data) != fmt.Sprintf("%q", origin) {
			t.Errorf("%s: %s", origin, a.Data)
		}
		for _, who := range []int64{pid, child} {
			if a := operator.call("Process.Get", fmt.Sprintf(`{"pid":%d}`, who), nil); !strings.Contains(string(a.Data), fmt.Sprintf(`"origin":%q`, origin)) {
				t.Errorf("pid %d: %s", who, a.Data)
			}
		}
	}
	if a := operator.call("Memory.Get", `{"key":"of"}`, nil); string(a.Data) != `"https://test.local/"` {
		t.Errorf("the operator sees %s", a.Data)
	}
}
