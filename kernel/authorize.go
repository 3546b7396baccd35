package kernel

import (
	"fmt"

	"github.com/promptware-os/pwos/schema"
)

// Authorize returns nil where pid, holding token (nil: none), may call the syscall of row at tick, else the error that the
// call gets: existence, expiry and permission of CAP 2. The kernel's own commands are nobody's, so its steps are not asked
// about. Quotas are the resource domain's, which knows what is held. processes serve the error's advice alone: without them
// (nil) pid is taken for one that can be granted to.
func Authorize(processes Processes, pid int64, token *Token, row *schema.Syscall, tick int64) *schema.Error {
	switch {
	case processes != nil && pid != Operator && ended(processes.Process(pid)):
		return Gone(pid)
	case row.Internal:
		return schema.Errorf(schema.Forbidden, "pid %d may not call %s: it is the kernel's own", pid, row.Type)
	case pid == Operator, row.Grant == schema.Everyone:
		return nil
	case row.Grant == schema.OperatorOnly:
		return schema.Errorf(schema.Forbidden, "pid %d may not call %s: only the operator may", pid, row.Type)
	case token == nil && !living(processes, pid):
		return schema.Errorf(schema.Forbidden, "pid %d may not call %s: %s", pid, row.Type, BeyondGrant(processes, pid))
	case token == nil || !token.Allows(row, tick):
		return denied(pid, token, row, tick)
	}
	return nil
}

// AllowsPath reports whether a call of a user-space syscall is granted by its path, such as Call:mcp/fs/*.
func AllowsPath(call *Call) bool {
	in, ok := call.Input.(*schema.CallInput)
	if !ok || call.Token == nil {
		return false
	}
	path, ok := schema.ToolPath(in.Syscall)
	return ok && call.Token.AllowsNamed("Call:"+path, call.Tick)
}

// denied tells what the call of a syscall lacks, and how to allow it without taking anything away. Where the process's own
// token would allow it, it is a granter's that has to.
func denied(pid int64, token *Token, row *schema.Syscall, tick int64) *schema.Error {
	lacks, of := token, pid
	if token != nil {
		lacks, of = token.missing(row, tick)
	}
	var why string
	switch {
	case lacks != nil && lacks.Expired(tick) && of == pid:
		why = fmt.Sprintf(": its token expired after tick %d, and it is tick %d: allow it again", *lacks.Granted.ExpiresAtTick, tick)
	case lacks != nil && lacks.Expired(tick):
		why = fmt.Sprintf(": the token of pid %d, which granted it, expired after tick %d, and it is tick %d: allow it again", of, *lacks.Granted.ExpiresAtTick, tick)
	case of != pid:
		why = fmt.Sprintf(": pid %d, which granted it, may not do so itself: allow it too", of)
	case row.Grant == schema.ByName && lacks != nil:
		why = ", which has to be granted by its name, as no pattern includes it: allow it too"
	default:
		why = ": allow it too"
	}
	return schema.Errorf(schema.Forbidden, `pid %d may not call %s%s with "pwos cap grant %d --add %s"`, pid, row.Type, why, of, row.Type)
}

// ended reports whether a process was one and is one no more.
func ended(p *schema.Descriptor) bool { return p != nil && p.State == terminated }

// Gone is what is told of a call that ends, or comes, after its process has ended (PROTOCOL 6). It is no denial.
func Gone(pid int64) *schema.Error {
	return schema.Errorf(schema.Ended, `pid %d has ended, and calls nothing any more: "pwos ps" shows who is there`, pid)
}

// living reports whether a grant could be made to pid.
func living(processes Processes, pid int64) bool {
	return processes == nil || BeyondGrant(processes, pid) == ""
}

// terminated is the state of a process that has ended (PROTOCOL 6).
const terminated = "TERMINATED"

// BeyondGrant says why nothing can be granted to pid, which never was a process or is one that has ended, and what to do
// instead; "" where something can.
func BeyondGrant(processes Processes, pid int64) string {
	switch p := processes.Process(pid); {
	case p == nil:
		return `there never was such a process: "pwos ps" shows who is there`
	case p.State == terminated:
		return `it has ended, and nothing can be granted to it: "pwos ps" shows who is there`
	}
	return ""
}
