package schema

import (
	"slices"
	"strings"
	"sync"

	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// ShortName is a row of the table of short names, by which pwosSyscall calls a syscall of the kernel (ABI 4,
// PROTOCOL 5).
//
// Names without a slash, including unknown ones, belong to the kernel, so that nothing can replace or shadow them. Names with a
// slash belong to user space and are not looked up here.
type ShortName struct {
	Name   string
	Action string // the first argument of a name with several syscalls, such as get of memory
	Type   string
	// Args are the members of data that arguments set, in order; the first Needs of them are required.
	Args  []string
	Needs int
	// CAP marks a function of CAP 5. It takes pid, then these arguments, then tick; each may also
	// be given by name.
	CAP bool
}

func builtinNames() []ShortName {
	return []ShortName{
		{Name: "ping", Type: "Syscall.Ping", Args: []string{"payload"}, Needs: 1},
		{Name: "echo", Type: "Syscall.Echo", Args: []string{"message"}, Needs: 1},
		{Name: "list", Type: "Syscall.List"},
		{Name: "describe", Type: "Syscall.Describe", Args: []string{"name"}, Needs: 1},
		{Name: "shutdown", Type: "Syscall.Shutdown"},

		{Name: "memory", Action: "get", Type: "Memory.Get", Args: []string{"key"}, Needs: 1},
		{Name: "memory", Action: "set", Type: "Memory.Set", Args: []string{"key", "value"}, Needs: 2},
		{Name: "memory", Action: "delete", Type: "Memory.Delete", Args: []string{"key"}, Needs: 1},
		{Name: "memory", Action: "list", Type: "Memory.List", Args: []string{"prefix", "limit", "cursor"}},

		{Name: "resolve", Type: "FileSystem.Resolve", Args: []string{"uri", "base"}, Needs: 1},
		{Name: "ingest", Type: "Kernel.Ingest", Args: []string{"uri", "integrity"}, Needs: 1},
		{Name: "hydrate", Type: "FileSystem.Hydrate", Args: []string{"uri"}},
		{Name: "fetch", Type: "Http.Fetch", Args: []string{"url"}, Needs: 1},
		{Name: "seal", Type: "Crypto.Seal", Args: []string{"plaintext", "aad"}, Needs: 1},
		{Name: "open", Type: "Crypto.Open", Args: []string{"value", "aad"}, Needs: 1},
		{Name: "derive", Type: "Crypto.Derive", Args: []string{"kid"}},

		{Name: "spawn", Type: "Syscall.Spawn", Args: []string{"child_agent_id", "intent"}, Needs: 1},
		{Name: "terminate", Type: "Syscall.Terminate", Args: []string{"target_pid", "reason"}, Needs: 1},
		{Name: "state", Type: "Syscall.GetState", Args: []string{"target_pid", "at_tick"}},
		{Name: "process", Type: "Process.Get", Args: []string{"pid"}, Needs: 1},
		{Name: "processes", Type: "Process.List", Args: []string{"state"}},
		{Name: "alloc", Type: "Syscall.Alloc", Args: []string{"resource_id", "amount"}, Needs: 2},
		{Name: "release", Type: "Syscall.Release", Args: []string{"resource_id", "amount"}, Needs: 2},
		{Name: "query", Type: "Syscall.Query", Args: []string{"resource_id"}, Needs: 1},
		{Name: "commit", Type: "Syscall.CommitDelta", Args: []string{"changes"}, Needs: 1},
		{Name: "rollback", Type: "Syscall.Rollback", Args: []string{"to_tick", "agent_id"}, Needs: 1},
		{Name: "checkpoint", Type: "Syscall.Checkpoint", Args: []string{"agent_id"}},
		{Name: "send", Type: "Syscall.SendMsg", Args: []string{"receiver_pid", "payload", "intent"}, Needs: 2},
		{Name: "receive", Type: "Ipc.Receive", Args: []string{"max", "intent", "wait_ms"}},
		{Name: "broadcast", Type: "Ipc.Broadcast", Args: []string{"payload", "intent"}, Needs: 1},

		{Name: "grant", Type: "Capability.Grant", Args: []string{"pid", "allowed_syscalls"}, Needs: 2},
		{Name: "revoke", Type: "Capability.Revoke", Args: []string{"pid"}, Needs: 1},
		{Name: "check", Type: "Capability.Check", Args: []string{"pid", "syscall", "resource_id", "amount"}, Needs: 2},
		{Name: "capability", Type: "Capability.Get", Args: []string{"pid"}},
		{Name: "audit", Type: "Audit.Log", Args: []string{"pid", "since_seq", "limit"}},
		{Name: "metrics", Type: "Audit.Metrics"},
		{Name: "verify", Type: "Audit.Verify"},
		{Name: "clock", Type: "Clock.Get"},
		{Name: "advance", Type: "Clock.Advance", Args: []string{"ticks"}, Needs: 1},

		{Name: "sys_alloc", CAP: true, Type: "Syscall.Alloc", Args: []string{"resource_id", "amount"}, Needs: 2},
		{Name: "sys_release", CAP: true, Type: "Syscall.Release", Args: []string{"resource_id", "amount"}, Needs: 2},
		{Name: "sys_query", CAP: true, Type: "Syscall.Query", Args: []string{"resource_id"}, Needs: 1},
		{Name: "sys_spawn", CAP: true, Type: "Syscall.Spawn", Args: []string{"child_agent_id", "intent", "role"}, Needs: 1},
		{Name: "sys_terminate", CAP: true, Type: "Syscall.Terminate", Args: []string{"target_pid"}, Needs: 1},
		{Name: "sys_commit_delta", CAP: true, Type: "Syscall.CommitDelta", Args: []string{"agent_id"}},
		{Name: "sys_rollback", CAP: true, Type: "Syscall.Rollback", Args: []string{"to_tick"}, Needs: 1},
		{Name: "sys_send_msg", CAP: true, Type: "Syscall.SendMsg", Args: []string{"receiver_pid", "intent", "payload"}, Needs: 3},
		{Name: "sys_checkpoint", CAP: true, Type: "Syscall.Checkpoint"},
		{Name: "sys_get_state", CAP: true, Type: "Syscall.GetState"},
	}
}

type abiIndex struct {
	rows   []ShortName
	byName map[string][]*ShortName // by name; several if the first argument is an action
}

// abi returns the index of the table, which is built once and immutable.
var abi = sync.OnceValue(func() *abiIndex {
	x := &abiIndex{rows: builtinNames(), byName: make(map[string][]*ShortName)}
	for i := range x.rows {
		row := &x.rows[i]
		x.byName[row.Name] = append(x.byName[row.Name], row)
	}
	return x
})

// ShortNames returns the table of short names. It is shared and must not be changed.
func ShortNames() []ShortName { return abi().rows }

// ToolPath returns the path below root of a user-space syscall, which is its name in grants (Call:PATH). ok is false if the
// name must be resolved first, because it is relative to an identity, or has . or .. or escaped characters.
func ToolPath(name string) (path string, ok bool) {
	path = strings.TrimPrefix(name, "os/")
	for part := range strings.SplitSeq(path, "/") {
		if strings.Trim(part, ".") == "" || strings.ContainsFunc(part, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r))
		}) {
			return "", false
		}
	}
	return path, UserSpace(name)
}

// UserSpace reports whether name is in user space: it has a slash (ABI 4). All others are the kernel's.
func UserSpace(name string) bool { return strings.Contains(name, "/") }

// ShortCall returns the syscall and data that pwosSyscall(name, ...args) means. Each argument is one valid JSON
// value.
//
// An object as the last argument, in place of an optional one, sets further members by name; null there omits the
// argument. A name that is not the kernel's is UnknownSyscall; missing, surplus or repeated arguments are
// InvalidInput. The syscall itself checks the rest of its data, and the gate the caller's capability, as for any
// other call.
func ShortCall(name string, args []Value) (typ string, data []byte, err *fault.Fault) {
	rows := abi().byName[name]
	if len(rows) == 0 {
		return "", nil, fault.WireUnknownSyscall.New("no such syscall: %q. Names without a slash are the kernel's, such as ping, memory and "+
			"describe; what lies below root is called by its path, such as os/tools/name", fault.Clip(name)).With("syscall", fault.Clip(name))
	}
	row := rows[0]
	if row.Action != "" {
		if row, err = action(rows, args); err != nil {
			return "", nil, err
		}
		args = args[1:]
	}
	data, err = row.data(args)
	return row.Type, data, err
}

// action returns the row whose Action is the first argument.
func action(rows []*ShortName, args []Value) (*ShortName, *fault.Fault) {
	known := make([]string, len(rows))
	for i, row := range rows {
		if len(args) > 0 && args[0][0] == '"' && string(jsontype.Unquote(args[0])) == row.Action {
			return row, nil
		}
		known[i] = row.Action
	}
	return nil, jsontype.Invalid("args[0]", "must be one of %s", strings.Join(known, ", "))
}

// data returns the data of the syscall for the arguments.
func (s *ShortName) data(args []Value) ([]byte, *fault.Fault) {
	var options Value
	names, needs, first := s.Args, s.Needs, 0 // those from first on are required
	if n := len(args); n > needs && args[n-1][0] == '{' || s.CAP && n == 1 && args[0][0] == '{' {
		options, args = args[n-1], args[:n-1]
	}
	switch {
	case s.CAP && options != nil && len(args) == 0:
		needs = 0 // they are given by name
	case s.CAP && len(args) == len(names)+2:
		names, needs, first = slices.Concat([]string{"pid"}, names, []string{"tick"}), needs+1, 1
	}
	if len(args) > len(names) {
		return nil, jsontype.Invalid("args", "has %d values: %s takes %s", len(args), s.Name, s.usage())
	}
	if len(args) < needs {
		return nil, jsontype.Invalid(names[len(args)], "is missing: %s takes %s", s.Name, s.usage())
	}
	given := make(map[string]bool, len(args))
	out := []byte{'{'}
	add := func(name string, value Value) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(jsontype.AppendString(out, name), ':'), value...)
		given[name] = true
	}
	for i, value := range args {
		if i >= first && i < needs || string(value) != "null" {
			add(names[i], value)
		}
	}
	var err *fault.Fault
	if options != nil {
		jsontype.Members(options, func(name, value []byte) bool {
			if given[string(name)] {
				err = jsontype.Invalid(string(name), "is given twice: as an argument and by its name")
				return false
			}
			add(string(name), value)
			return true
		})
	}
	if err != nil {
		return nil, err
	}
	return append(out, '}'), nil
}

// usage returns the arguments of the short name as text.
func (s *ShortName) usage() string {
	list := make([]string, len(s.Args))
	for i, name := range s.Args {
		if list[i] = name; i >= s.Needs {
			list[i] = "[" + name + "]"
		}
	}
	usage := "no arguments, or one object of members"
	if len(list) > 0 {
		usage = strings.Join(list, " ") + ", then optionally an object of further members"
	}
	if s.CAP {
		usage += ", or all that CAP has: " + strings.Join(slices.Concat([]string{"pid"}, s.Args, []string{"tick"}), " ")
	}
	return usage
}
