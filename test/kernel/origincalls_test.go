package kernel_test

import (
	"fmt"
	"path/filepath"
	"slices"
)

// subject is the subject of calls. What belongs to the other origin, or does not exist, is strange.
type subject struct {
	foreign    int64
	pid, child int64 // child: with which an agent may do more
	blob       string
	stranger   func() int64 // a PID that is not the agent's: a subscription to its own would push between the answers
	strange    bool
}

// subject picks one. Each pick uses the same random numbers, with or without other agents.
func (d *dweller) subject() *subject {
	own, on := d.pids[d.choose.IntN(len(d.pids))], &subject{foreign: d.foreign()}
	on.pid, on.child, on.blob = own, on.foreign, d.foreignBlob()
	if d.choose.IntN(3) == 0 {
		on.pid = on.foreign
	}
	if n := len(d.pids); n > 1 && d.choose.IntN(3) > 0 {
		on.child = d.pids[1+d.choose.IntN(n-1)]
	}
	strangeBlob := true
	if n := len(d.blobs); n > 0 && d.choose.IntN(3) > 0 {
		on.blob, strangeBlob = d.blobs[d.choose.IntN(n)], false
	}
	on.strange = strangeBlob || on.pid == on.foreign || on.child == on.foreign
	on.stranger = func() int64 {
		on.strange = true
		if slices.Contains(d.pids, on.child) {
			return d.foreign()
		}
		return on.child
	}
	return on
}

// foreignBlob returns the path of a blob of the other origin, or of one that never existed.
func (d *dweller) foreignBlob() string {
	n := d.choose.IntN(1 << 16)
	if others := d.other().blobs; len(others) > 0 {
		return others[n%len(others)]
	}
	return d.blobIn.foreign + fmt.Sprintf("%026d", n)
}

// pick picks a call.
func (d *dweller) pick(on *subject) (typ, data string) {
	calls := append(d.within(on), d.outside(on)...)
	return calls[d.choose.IntN(len(calls))]()
}

// within returns calls that are answered from the kernel's state.
func (d *dweller) within(on *subject) []func() (typ, data string) {
	r := d.choose
	key := func() string { return fmt.Sprintf(`"k/%d"`, r.IntN(12)) }
	since := int64(0)
	if len(d.seqs) > 0 && r.IntN(2) == 0 {
		since = d.seqs[r.IntN(len(d.seqs))]
	}
	return []func() (string, string){
		func() (string, string) { return "Memory.Set", fmt.Sprintf(`{"key":%s,"value":%d}`, key(), r.IntN(100)) },
		func() (string, string) { return "Memory.Get", fmt.Sprintf(`{"key":%s}`, key()) },
		func() (string, string) { return "Memory.Delete", fmt.Sprintf(`{"key":%s}`, key()) },
		func() (string, string) {
			return "Memory.List", fmt.Sprintf(`{"prefix":"k","limit":%d,"cursor":%s}`, 1+r.IntN(9), key())
		},
		func() (string, string) { return "Memory.List", `{"prefix":"proc/","limit":1000}` },
		func() (string, string) { return "Memory.Get", `{"key":"proc/meminfo"}` },
		func() (string, string) { return "Memory.Get", `{"key":"proc/cmdline"}` },
		func() (string, string) { return "Memory.Get", fmt.Sprintf(`{"key":"proc/%d/status"}`, on.pid) },
		func() (string, string) {
			return "Syscall.Call", fmt.Sprintf(`{"syscall":"memory","args":["get",%s]}`, key())
		},
		func() (string, string) {
			return "Syscall.Call", fmt.Sprintf(`{"syscall":"memory","args":["set",%s,%d]}`, key(), r.IntN(9))
		},
		func() (string, string) {
			return "Syscall.Call", fmt.Sprintf(`{"syscall":"capability","args":[{"pid":%d}]}`, on.pid)
		},
		func() (string, string) {
			return "Syscall.Spawn", fmt.Sprintf(`{"child_agent_id":"agent-%x","capabilities":{"allowed_syscalls":["Memory.*"],"expires_at_tick":%d}}`, r.Uint64(), r.IntN(30))
		},
		func() (string, string) { return "Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, on.child) },
		func() (string, string) { return "Process.Get", fmt.Sprintf(`{"pid":%d}`, on.pid) },
		func() (string, string) { return "Process.List", `{"state":"TERMINATED"}` },
		func() (string, string) { return "Process.List", `{"state":"READY"}` },
		func() (string, string) {
			return "Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":1}`, on.pid)
		},
		func() (string, string) { return "Syscall.SendMsg", `{"receiver_pid":0,"payload":1}` },
		func() (string, string) { return "Ipc.Broadcast", `{"payload":2}` },
		func() (string, string) { return "Ipc.Receive", `{"max":5}` },
		func() (string, string) { return "Ipc.Ack", fmt.Sprintf(`{"msg_ids":[%d]}`, r.IntN(500)) },
		func() (string, string) { return "Capability.Get", fmt.Sprintf(`{"pid":%d}`, on.pid) },
		func() (string, string) {
			return "Capability.Check", fmt.Sprintf(`{"pid":%d,"syscall":"Memory.Set"}`, on.pid)
		},
		func() (string, string) {
			return "Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["Memory.Get"],"expires_at_tick":%d}`, on.child, r.IntN(30))
		},
		func() (string, string) { return "Capability.GrantDefault", fmt.Sprintf(`{"pid":%d}`, on.child) },
		func() (string, string) { return "Capability.Revoke", fmt.Sprintf(`{"pid":%d}`, on.child) },
		func() (string, string) { return "Capability.RevokeExpired", `{}` },
		func() (string, string) { return "Syscall.CommitDelta", fmt.Sprintf(`{"changes":{"n":%d}}`, r.IntN(9)) },
		func() (string, string) { return "Syscall.CommitDelta", `{"agent_id":"other"}` },
		func() (string, string) { return "Syscall.Rollback", fmt.Sprintf(`{"to_tick":%d}`, r.IntN(20)) },
		func() (string, string) { return "Syscall.Checkpoint", `{}` },
		func() (string, string) { return "Syscall.GetState", fmt.Sprintf(`{"target_pid":%d}`, on.pid) },
		func() (string, string) { return "Audit.Log", fmt.Sprintf(`{"since_seq":%d,"limit":4}`, since) },
		func() (string, string) {
			return "Audit.Log", fmt.Sprintf(`{"pid":%d,"limit":2,"since_seq":%d}`, on.pid, since)
		},
		func() (string, string) {
			return "Audit.Log", fmt.Sprintf(`{"correlation":"talk-%d","limit":3,"since_seq":%d}`, r.IntN(20), since)
		},
		func() (string, string) { return "Audit.Metrics", `{}` },
		func() (string, string) { return "Process.Subscribe", fmt.Sprintf(`{"pid":%d}`, on.stranger()) },
		func() (string, string) { return "Memory.Get", fmt.Sprintf(`{"key":"a","pid":%d}`, on.stranger()) },
		func() (string, string) { return "Syscall.List", `{}` },
		func() (string, string) { return "Clock.Get", `{}` },
	}
}

// outside returns calls that access something outside of the kernel: root, servers, tools, blobs.
func (d *dweller) outside(on *subject) []func() (typ, data string) {
	r := d.choose
	oneOf := func(list ...string) string { return list[r.IntN(len(list))] }
	resource := func() string {
		return oneOf("os/one.md", "os/two.md", "os/long.md", "./two.md", "../one.md", "deep/three.md", "os/broken.md", "nothing.md", d.server+"/v1.2.3/remote.md", d.server+"/none")
	}
	page := func() string {
		return d.server + oneOf("/echo", "/again", "/none", "/big/"+oneOf("v", "w", "x", "y", "z"))
	}
	ref := func() string { return fmt.Sprintf(`{"scheme":"file","path":%q}`, on.blob) }
	call := func(name, args string) (string, string) {
		return "Syscall.Call", fmt.Sprintf(`{"syscall":%q,"args":[%s]}`, name, args)
	}
	return []func() (string, string){
		func() (string, string) { return "FileSystem.Resolve", fmt.Sprintf(`{"uri":%q}`, resource()) },
		func() (string, string) {
			return "FileSystem.Resolve", fmt.Sprintf(`{"uri":"./x","pid":%d}`, on.pid)
		},
		func() (string, string) {
			return "FileSystem.Resolve", fmt.Sprintf(`{"uri":%q,"base":%q}`, resource(), resource())
		},
		func() (string, string) { return call("resolve", `"./y"`) },
		func() (string, string) { return "Kernel.Ingest", fmt.Sprintf(`{"uri":%q}`, resource()) },
		func() (string, string) { return "Kernel.Ingest", `{"uri":"os/long.md"}` },
		func() (string, string) {
			return "Kernel.Ingest", fmt.Sprintf(`{"uri":%q,"pid":%d}`, resource(), on.pid)
		},
		func() (string, string) { return call("ingest", fmt.Sprintf("%q", resource())) },
		func() (string, string) { return "FileSystem.Hydrate", `{}` },
		func() (string, string) { return "FileSystem.Hydrate", fmt.Sprintf(`{"pid":%d}`, on.pid) },
		func() (string, string) { return "FileSystem.Hydrate", fmt.Sprintf(`{"uri":%q}`, resource()) },
		func() (string, string) { return "Http.Fetch", fmt.Sprintf(`{"url":%q}`, page()) },
		func() (string, string) { return "Http.Fetch", fmt.Sprintf(`{"url":%q}`, d.server+"/big/v") },
		func() (string, string) { return "Http.Fetch", fmt.Sprintf(`{"url":%q,"pid":%d}`, page(), on.pid) },
		func() (string, string) {
			return "Http.Fetch", fmt.Sprintf(`{"url":%q,"method":"POST","bodyRef":%s}`, d.server+"/echo", ref())
		},
		func() (string, string) { return call("fetch", fmt.Sprintf("%q", page())) },
		func() (string, string) { return "Memory.Set", fmt.Sprintf(`{"key":"k/long","valueRef":%s}`, ref()) },
		func() (string, string) { return "Memory.Get", `{"key":"k/long"}` },
		func() (string, string) { return call("memory", `"get","k/long"`) },
		func() (string, string) {
			return "Memory.Set", fmt.Sprintf(`{"key":"k/0","valueRef":{"scheme":"file","path":%q}}`, filepath.Dir(on.blob))
		},
		func() (string, string) {
			return "Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payloadRef":%s}`, on.pid, ref())
		},
		func() (string, string) { return "Ipc.Broadcast", fmt.Sprintf(`{"payloadRef":%s}`, ref()) },
		func() (string, string) { return call(moduleTool, `{"a":1}`) },
		func() (string, string) {
			if d.tools++; d.tools%5 != 1 { // it starts a process
				return "Syscall.Call", fmt.Sprintf(`{"syscall":%q,"describe":true}`, moduleTool)
			}
			return call(programTool, oneOf("1", `"x"`))
		},
		func() (string, string) { return call("os/tools/none", "") },
		func() (string, string) {
			return "Syscall.Call", fmt.Sprintf(`{"syscall":%q,"args":[],"pid":%d}`, moduleTool, on.pid)
		},
	}
}
