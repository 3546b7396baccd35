package schema_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// coming returns the syscalls of short names that the table does not have yet.
func coming() []string {
	return []string{
		"FileSystem.Resolve", "FileSystem.Hydrate", "Kernel.Ingest", "Http.Fetch",
	}
}

func raws(texts ...string) []schema.Value {
	list := make([]schema.Value, len(texts))
	for i, t := range texts {
		list[i] = schema.Value(t)
	}
	return list
}

// TestShortCall calls each row in its usual form; the syscall decodes the result.
func TestShortCall(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		args []schema.Value
		typ  string
		data string
	}{
		{"ping", raws(`{"a":1}`), "Syscall.Ping", `{"payload":{"a":1}}`},
		{"ping", raws(`null`), "Syscall.Ping", `{"payload":null}`},
		{"echo", raws(`"x"`), "Syscall.Echo", `{"message":"x"}`},
		{"list", nil, "Syscall.List", `{}`},
		{"list", raws(`{}`), "Syscall.List", `{}`},
		{"describe", raws(`"Memory.Set"`), "Syscall.Describe", `{"name":"Memory.Set"}`},
		{"shutdown", nil, "Syscall.Shutdown", `{}`},
		{"memory", raws(`"get"`, `"k"`), "Memory.Get", `{"key":"k"}`},
		{"memory", raws(`"\u0067et"`, `"k"`, `{"pid":3}`), "Memory.Get", `{"key":"k","pid":3}`},
		{"memory", raws(`"set"`, `"k"`, `{"a":1}`), "Memory.Set", `{"key":"k","value":{"a":1}}`},
		{"memory", raws(`"set"`, `"k"`, `null`), "Memory.Set", `{"key":"k","value":null}`},
		{"memory", raws(`"set"`, `"k"`, `1`, `{"pid":3,"tick":4}`), "Memory.Set", `{"key":"k","value":1,"pid":3,"tick":4}`},
		{"memory", raws(`"delete"`, `"k"`), "Memory.Delete", `{"key":"k"}`},
		{"memory", raws(`"list"`), "Memory.List", `{}`},
		{"memory", raws(`"list"`, `"a/"`, `null`, `"c"`), "Memory.List", `{"prefix":"a/","cursor":"c"}`},
		{"resolve", raws(`"./a"`, `"os:///b"`), "FileSystem.Resolve", `{"uri":"./a","base":"os:///b"}`},
		{"resolve", raws(`"./a"`, `null`), "FileSystem.Resolve", `{"uri":"./a"}`},
		{"ingest", raws(`"a/b"`, `"sha256-x"`), "Kernel.Ingest", `{"uri":"a/b","integrity":"sha256-x"}`},
		{"hydrate", nil, "FileSystem.Hydrate", `{}`},
		{"fetch", raws(`"https://h.example/"`, `{"method":"POST","body":"x"}`), "Http.Fetch", `{"url":"https://h.example/","method":"POST","body":"x"}`},
		{"seal", raws(`"x"`), "Crypto.Seal", `{"plaintext":"x"}`},
		{"open", raws(`"pwenc:v1:x"`), "Crypto.Open", `{"value":"pwenc:v1:x"}`},
		{"derive", nil, "Crypto.Derive", `{}`},
		{"spawn", raws(`"w"`, `{"intent":"work","priority":"HIGH"}`), "Syscall.Spawn", `{"child_agent_id":"w","intent":"work","priority":"HIGH"}`},
		{"terminate", raws(`7`, `"done"`), "Syscall.Terminate", `{"target_pid":7,"reason":"done"}`},
		{"state", nil, "Syscall.GetState", `{}`},
		{"state", raws(`null`, `5`), "Syscall.GetState", `{"at_tick":5}`},
		{"process", raws(`7`), "Process.Get", `{"pid":7}`},
		{"processes", raws(`"READY"`), "Process.List", `{"state":"READY"}`},
		{"alloc", raws(`"gpu"`, `1.5`), "Syscall.Alloc", `{"resource_id":"gpu","amount":1.5}`},
		{"release", raws(`"gpu"`, `1.50`), "Syscall.Release", `{"resource_id":"gpu","amount":1.50}`},
		{"query", raws(`"gpu"`), "Syscall.Query", `{"resource_id":"gpu"}`},
		{"commit", raws(`{"a":1}`, `{"outcome":"ok"}`), "Syscall.CommitDelta", `{"changes":{"a":1},"outcome":"ok"}`},
		{"rollback", raws(`3`), "Syscall.Rollback", `{"to_tick":3}`},
		{"checkpoint", nil, "Syscall.Checkpoint", `{}`},
		{"send", raws(`7`, `{"a":1}`, `"greet"`, `{"priority":"URGENT"}`), "Syscall.SendMsg", `{"receiver_pid":7,"payload":{"a":1},"intent":"greet","priority":"URGENT"}`},
		{"receive", raws(`10`), "Ipc.Receive", `{"max":10}`},
		{"broadcast", raws(`[1]`), "Ipc.Broadcast", `{"payload":[1]}`},
		{"grant", raws(`7`, `["*"]`, `{"resource_quotas":{"gpu":1}}`), "Capability.Grant", `{"pid":7,"allowed_syscalls":["*"],"resource_quotas":{"gpu":1}}`},
		{"revoke", raws(`7`), "Capability.Revoke", `{"pid":7}`},
		{"check", raws(`7`, `"SYS_ALLOC"`, `"gpu"`, `1`), "Capability.Check", `{"pid":7,"syscall":"SYS_ALLOC","resource_id":"gpu","amount":1}`},
		{"capability", nil, "Capability.Get", `{}`},
		{"audit", raws(`null`, `10`), "Audit.Log", `{"since_seq":10}`},
		{"metrics", nil, "Audit.Metrics", `{}`},
		{"verify", nil, "Audit.Verify", `{}`},
		{"clock", nil, "Clock.Get", `{}`},
		{"advance", raws(`1`), "Clock.Advance", `{"ticks":1}`},
		{"sys_alloc", raws(`"gpu"`, `2`), "Syscall.Alloc", `{"resource_id":"gpu","amount":2}`},
		{"sys_alloc", raws(`7`, `"gpu"`, `2`, `100`), "Syscall.Alloc", `{"pid":7,"resource_id":"gpu","amount":2,"tick":100}`},
		{"sys_alloc", raws(`{"resource_id":"gpu","amount":2,"pid":7}`), "Syscall.Alloc", `{"resource_id":"gpu","amount":2,"pid":7}`},
		{"sys_release", raws(`null`, `"gpu"`, `2`, `null`), "Syscall.Release", `{"resource_id":"gpu","amount":2}`},
		{"sys_query", raws(`7`, `"gpu"`, `null`), "Syscall.Query", `{"pid":7,"resource_id":"gpu"}`},
		{"sys_spawn", raws(`7`, `"w"`, `"work"`, `null`, `3`), "Syscall.Spawn", `{"pid":7,"child_agent_id":"w","intent":"work","tick":3}`},
		{"sys_terminate", raws(`7`), "Syscall.Terminate", `{"target_pid":7}`},
		{"sys_terminate", raws(`0`, `7`, `1`), "Syscall.Terminate", `{"pid":0,"target_pid":7,"tick":1}`},
		{"sys_commit_delta", raws(`7`, `"w"`, `3`, `{"outcome":"ok"}`), "Syscall.CommitDelta", `{"pid":7,"agent_id":"w","tick":3,"outcome":"ok"}`},
		{"sys_rollback", raws(`7`, `2`, `3`), "Syscall.Rollback", `{"pid":7,"to_tick":2,"tick":3}`},
		{"sys_send_msg", raws(`7`, `"greet"`, `{"a":1}`), "Syscall.SendMsg", `{"receiver_pid":7,"intent":"greet","payload":{"a":1}}`},
		{"sys_send_msg", raws(`1`, `7`, `"greet"`, `null`, `3`), "Syscall.SendMsg", `{"pid":1,"receiver_pid":7,"intent":"greet","payload":null,"tick":3}`},
		{"sys_checkpoint", raws(`7`, `3`), "Syscall.Checkpoint", `{"pid":7,"tick":3}`},
		{"sys_get_state", nil, "Syscall.GetState", `{}`},
	}
	called := make(map[string]bool)
	for _, c := range cases {
		typ, data, fault := schema.ShortCall(c.name, c.args)
		if fault != nil || typ != c.typ || string(data) != c.data {
			t.Errorf("%s %s: %s %s, %v, want %s %s", c.name, c.args, typ, data, fault, c.typ, c.data)
			continue
		}
		called[typ] = true
		if row, ok := schema.Lookup(typ); ok {
			if _, fault := row.Input().Decode(data); fault != nil {
				t.Errorf("%s %s: %v", c.name, c.args, fault)
			}
		}
	}
	for _, row := range schema.ShortNames() {
		if !called[row.Type] {
			t.Errorf("no case calls %s %s", row.Name, row.Action)
		}
	}
}

// TestShortCallRefuses checks the errors for unknown names and for invalid arguments.
func TestShortCallRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		args  []schema.Value
		class fault.Kind
		says  string
	}{
		{"", nil, fault.UnknownSyscall, `""`},
		{"nothing", nil, fault.UnknownSyscall, "nothing"},
		{"Ping", nil, fault.UnknownSyscall, "Ping"},
		{"Syscall.Ping", nil, fault.UnknownSyscall, "Syscall.Ping"},
		{"ping ", nil, fault.UnknownSyscall, "ping "},
		{"os/ping", nil, fault.UnknownSyscall, "os/ping"},
		{"./ping", nil, fault.UnknownSyscall, "./ping"},
		{"ping", nil, fault.InvalidInput, "payload"},
		{"ping", raws(`1`, `2`), fault.InvalidInput, "2 values"},
		{"list", raws(`1`), fault.InvalidInput, "no arguments"},
		{"memory", nil, fault.InvalidInput, "get, set, delete, list"},
		{"memory", raws(`"drop"`), fault.InvalidInput, "get, set, delete, list"},
		{"memory", raws(`{"action":"get"}`), fault.InvalidInput, "get, set"},
		{"memory", raws(`"set"`, `"k"`), fault.InvalidInput, "value"},
		{"memory", raws(`"get"`, `"k"`, `{"key":"j"}`), fault.InvalidInput, "twice"},
		{"spawn", raws(`"a"`, `"b"`, `"c"`), fault.InvalidInput, "[intent]"},
		{"sys_alloc", raws(`7`, `"gpu"`, `2`), fault.InvalidInput, "or all that CAP has: pid resource_id amount tick"},
		{"sys_send_msg", raws(`7`, `"greet"`), fault.InvalidInput, "payload is missing"},
		{"sys_none", nil, fault.UnknownSyscall, "sys_none"},
		{strings.Repeat("x", 5000), nil, fault.UnknownSyscall, "xxx"},
	} {
		typ, data, fault := schema.ShortCall(c.name, c.args)
		if fault == nil || fault.Kind != c.class || !strings.Contains(fault.Message, c.says) || len(fault.Message) > 1024 {
			t.Errorf("%.40q %s: %s %s, %v", c.name, c.args, typ, data, fault)
		}
	}
}

// TestShortNamesFit compares the names with the syscall table: each stands for a callable syscall whose members have
// its arguments. Exactly the required members must be given, and no optional one is an object, which would be taken
// for members.
func TestShortNamesFit(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, s := range schema.ShortNames() {
		if key := s.Name + " " + s.Action; seen[key] {
			t.Errorf("%s is there twice", key)
		} else {
			seen[key] = true
		}
		if schema.UserSpace(s.Name) || s.Name != strings.ToLower(s.Name) || schema.ValidType(s.Name) {
			t.Errorf("%q is no short name", s.Name)
		}
		row, ok := schema.Lookup(s.Type)
		if !ok {
			if !slices.Contains(coming(), s.Type) {
				t.Errorf("%s stands for %s, which does not exist", s.Name, s.Type)
			}
			continue
		}
		if row.Internal || s.Type == "Syscall.Call" {
			t.Errorf("%s stands for %s, which clients cannot call", s.Name, s.Type)
		}
		for i, member := range s.Args {
			_, fault := row.Input().Decode([]byte(`{"` + member + `":{}}`))
			object := fault == nil || strings.Contains(fault.Message, "is missing") && fault.Field != member
			if fault != nil && strings.Contains(fault.Message, "is not a member") {
				t.Errorf("%s: %s has no member %s", s.Name, s.Type, member)
			}
			if i >= s.Needs && object {
				t.Errorf("%s: the optional %s may be an object", s.Name, member)
			}
		}
		// The required arguments alone are sufficient.
		if s.Type == "Syscall.CommitDelta" || s.Type == "Ipc.Broadcast" {
			continue // the changes of a delta are optional, and a payload may be a reference, which has another name
		}
		if _, fault := row.Input().Decode([]byte(`{}`)); (fault != nil) != (s.Needs > 0) {
			t.Errorf("%s needs %d, and %s without any says: %v", s.Name, s.Needs, s.Type, fault)
		}
	}
}

// TestShortCallIsJSON checks that the result for any arguments is a strict JSON object or a fault.
func TestShortCallIsJSON(t *testing.T) {
	t.Parallel()
	arg := rapid.SampledFrom([]string{`null`, `1`, `"a"`, `"get"`, `"set"`, `{}`, `{"pid":1}`, `{"key":1,"\u0061":2}`, `[]`, `true`})
	rapid.Check(t, func(t *rapid.T) {
		row := rapid.SampledFrom(schema.ShortNames()).Draw(t, "row")
		args := raws(rapid.SliceOfN(arg, 0, 6).Draw(t, "args")...)
		_, data, fault := schema.ShortCall(row.Name, args)
		if fault == nil && (!schema.Valid(data) || data[0] != '{') {
			t.Fatalf("%s %s: %s", row.Name, args, data)
		}
	})
}

// TestJSONRPC checks the bytes of the response for each outcome.
func TestJSONRPC(t *testing.T) {
	t.Parallel()
	for want, got := range map[string][]byte{
		`{"jsonrpc":"2.0","result":{"a":1.0},"id":1}`: schema.AppendRPCResult(nil, []byte(`{"a":1.0}`)),
		`{"jsonrpc":"2.0","result":null,"id":1}`:      schema.AppendRPCResult(nil, nil),
		`{"jsonrpc":"2.0","error":{"code":-32601,"message":"no such syscall","data":{"code":404,"message":"no such syscall"}},"id":1}`: schema.AppendRPCError(
			nil, fault.WireUnknownSyscall.New("no such syscall")),
		`{"jsonrpc":"2.0","error":{"code":-32000,"message":"a","data":{"code":502,"message":"a","cause":{"code":504,"message":"\"b\""}}},"id":1}`: schema.AppendRPCError(
			nil, &fault.Fault{Kind: fault.Upstream, Message: "a", Cause: fault.HTTPTimeout.New(`"b"`)}),
	} {
		if string(got) != want+"\n" || !schema.Valid(got) {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// TestRPCCode checks that each kind of error has the code of PROTOCOL 8.
func TestRPCCode(t *testing.T) {
	t.Parallel()
	special := map[fault.Kind]int{
		fault.InvalidJSON: -32700, fault.UnknownSyscall: -32601,
		fault.InvalidInput: -32602, fault.SchemaViolation: -32602,
	}
	for class := fault.Internal; class <= fault.Pending; class++ {
		want, ok := special[class]
		if !ok {
			want = -32000
		}
		if got := schema.RPCCode(&fault.Fault{Kind: class}); got != want {
			t.Errorf("class %d: %d, want %d", class, got, want)
		}
	}
}
