package memory

import (
	"bytes"
	"context"
	"sort"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Keys under proc/ describe the kernel (PROTOCOL 5). They are computed when read, and not stored.
const (
	procRoot    = "proc/"
	procCmdline = procRoot + "cmdline"
	procMeminfo = procRoot + "meminfo"
	procOrigins = procRoot + "origins" // the operator's only
	procSelf    = procRoot + "self" + procStatus
	procStatus  = "/status"
)

// inProc reports whether a key, or a prefix of keys, is below proc/.
func inProc(key string) bool { return strings.HasPrefix(key, procRoot) }

// readProc returns a value below proc/; errors name the key as it was written. What the call may not see does not
// exist for it: PIDs of another origin look like PIDs that were never given.
func (d *Domain) readProc(call *kernel.Call, key, written string) (schema.Value, error) {
	switch key {
	case procCmdline:
		return bytes.Clone(d.parameters), nil
	case procMeminfo:
		return schema.Marshal(d.meminfo(call.Origin))
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

type meminfo struct {
	Keys  int64 `json:"keys"`
	Bytes int64 `json:"bytes"` // of all keys and values
}

func (d *Domain) meminfo(origin string) meminfo {
	s := d.spaces[origin]
	if s == nil {
		return meminfo{}
	}
	return meminfo{int64(s.len()), s.bytes}
}

// Origins returns the number of keys of each origin that has some.
func (d *Domain) Origins() map[string]int64 {
	keys := make(map[string]int64, len(d.spaces))
	for origin, s := range d.spaces {
		keys[origin] = int64(s.len())
	}
	return keys
}

// statusOf returns the PID of a key proc/<pid>/status in its canonical spelling.
func statusOf(key string) (int64, bool) {
	digits, ok := strings.CutSuffix(strings.TrimPrefix(key, procRoot), procStatus)
	if !ok {
		return 0, false
	}
	pid, err := strconv.ParseInt(digits, 10, 64)
	return pid, err == nil && strconv.FormatInt(pid, 10) == digits
}

// status describes a process, as Process.Get does. The operator has no descriptor; only it sees its own status.
func (d *Domain) status(call *kernel.Call, pid int64, written string) (schema.Value, error) {
	if pid == kernel.Operator && call.PID == kernel.Operator {
		return schema.Marshal(struct {
			PID    int64  `json:"pid"`
			State  string `json:"state"`
			Origin string `json:"origin"`
		}{pid, "RUNNING", call.Origin})
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

// eachProc calls yield with the keys below proc/ that the call can read, ascending, until yield returns false or ctx
// ends.
func eachProc(ctx context.Context, processes kernel.Processes, call *kernel.Call, last int64, yield func(key string) bool) {
	if call.PID == kernel.Operator && !yield(statusKey(kernel.Operator)) {
		return
	}
	for pid := range byDigits(last) {
		if ctx.Err() != nil || shows(call, processes.Process(pid)) && !yield(statusKey(pid)) {
			return
		}
	}
	for _, key := range []string{procCmdline, procMeminfo, procOrigins} {
		if (key != procOrigins || call.PID == kernel.Operator) && !yield(key) {
			return
		}
	}
	if call.PID == kernel.Operator || shows(call, processes.Process(call.PID)) {
		yield(procSelf)
	}
}

// statusKey is the key that statusOf parses.
func statusKey(pid int64) string { return procRoot + strconv.FormatInt(pid, 10) + procStatus }

// lastPID finds the greatest PID ever given. PIDs are given consecutively from 1, and an ended process stays in the
// table, so there is no gap below it.
func lastPID(processes kernel.Processes) int64 {
	known := func(pid int64) bool { return processes.Process(pid) != nil }
	bound := int64(1)
	for known(bound) {
		bound *= 2
	}
	return int64(sort.Search(int(bound), func(i int) bool { return !known(int64(i) + 1) }))
}

// byDigits returns the numbers from 1 to last in the order of their decimal digits: 1, 10, 11, 2.
func byDigits(last int64) func(yield func(int64) bool) {
	return func(yield func(int64) bool) {
		n := int64(1)
		for range last {
			if !yield(n) {
				return
			}
			if n*10 <= last {
				n *= 10
				continue
			}
			for n%10 == 9 || n == last {
				n /= 10
			}
			n++
		}
	}
}
