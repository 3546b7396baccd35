package memory

import (
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// What the kernel says of itself, under proc/ (PROTOCOL 5). It is made when it is read; nothing of it is stored.
const (
	procRoot    = "proc/"
	procCmdline = procRoot + "cmdline"
	procMeminfo = procRoot + "meminfo"
	procOrigins = procRoot + "origins" // the operator's alone
	procSelf    = procRoot + "self" + procStatus
	procStatus  = "/status"
)

// inProc reports whether a key, or the prefix of some, lies below proc/.
func inProc(key string) bool { return strings.HasPrefix(key, procRoot) }

func readOnly(key string) *schema.Error {
	return schema.Errorf(schema.Forbidden, "Operation not allowed: /%s cannot be written: the kernel makes proc/ itself, and it is read-only", key)
}

// readProc answers Memory.Get below proc/; errors name the key as it was written. What the call may not see is not there:
// another origin's PIDs cannot be told from those that nobody has.
func (d *Domain) readProc(call *kernel.Call, key, written string) ([]byte, error) {
	switch key {
	case procCmdline:
		return []byte(d.parameters), nil
	case procMeminfo:
		return d.meminfo(call.Origin), nil
	case procOrigins:
		if call.PID == kernel.Operator {
			return schema.Marshal(d.Origins())
		}
		return nil, notFound(written)
	case procSelf:
		return d.status(call, call.PID, written)
	}
	if pid, ok := statusOf(key); ok {
		return d.status(call, pid, written)
	}
	return nil, notFound(written)
}

// meminfo says how many keys the origin has, and the bytes of all its keys and values.
func (d *Domain) meminfo(origin string) []byte {
	var bytes int64
	s := d.spaces[origin]
	if s != nil {
		bytes = s.bytes
	}
	data := strconv.AppendInt([]byte(`{"keys":`), int64(s.len()), 10)
	data = strconv.AppendInt(append(data, `,"bytes":`...), bytes, 10)
	return append(data, '}')
}

// Origins returns how many keys each origin has, of those that have some.
func (d *Domain) Origins() map[string]int64 {
	keys := make(map[string]int64, len(d.spaces))
	for origin, s := range d.spaces {
		keys[origin] = int64(s.len())
	}
	return keys
}

// statusOf returns the PID of a key proc/<pid>/status, written as the kernel writes it.
func statusOf(key string) (int64, bool) {
	digits, ok := strings.CutSuffix(strings.TrimPrefix(key, procRoot), procStatus)
	if !ok {
		return 0, false
	}
	pid, err := strconv.ParseInt(digits, 10, 64)
	return pid, err == nil && strconv.FormatInt(pid, 10) == digits
}

// status describes a process, as Process.Get does. The operator has no descriptor, and a status for itself alone.
func (d *Domain) status(call *kernel.Call, pid int64, written string) ([]byte, error) {
	if pid == kernel.Operator && call.PID == kernel.Operator {
		data := schema.AppendString([]byte(`{"pid":0,"state":"RUNNING","origin":`), call.Origin)
		return append(data, '}'), nil
	}
	p := d.processes.Process(pid)
	if !shows(call, p) {
		return nil, notFound(written)
	}
	return schema.Marshal(p)
}

// shows reports whether the call may see the process: an agent sees those of its origin, the operator all.
func shows(call *kernel.Call, p *schema.Descriptor) bool {
	return p != nil && (call.PID == kernel.Operator || p.Origin == call.Origin)
}
