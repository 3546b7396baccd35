package kernel

import (
	"fmt"
	"strings"

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

// denied tells what the call of a syscall lacks.
func denied(pid int64, token *Token, row *schema.Syscall, tick int64) *schema.Error {
	what := row.Type
	if row.Grant == schema.ByName && token != nil {
		what += ", which has to be granted by its name, as no pattern includes it"
	}
	return lacks(pid, token, tick, what, row.Type, func(g *schema.TokenGrant) bool { return names(g, row) })
}

// AuthorizeCall returns nil where pid, holding token, may call the user-space syscall of a name at tick: its path below root, or
// another URI, which Syscall.Call alone allows.
func AuthorizeCall(pid int64, token *Token, uri string, tick int64) *schema.Error {
	pattern := schema.CallType
	if path, ok := strings.CutPrefix(uri, "os:///"); ok {
		pattern = callWord + ":" + path
	}
	if pid == Operator || token != nil && token.AllowsNamed(pattern, tick) {
		return nil
	}
	return lacks(pid, token, tick, uri, pattern, func(g *schema.TokenGrant) bool { return anyCovers(g.AllowedSyscalls, pattern) })
}

// lacks tells that pid may not call what, and how to allow it without taking anything away: by adding pattern to its token, or,
// where that would allow it, to the granter's that is in the way.
func lacks(pid int64, token *Token, tick int64, what, pattern string, allows func(*schema.TokenGrant) bool) *schema.Error {
	missing, of := token, pid
	if token != nil {
		missing, of = token.missing(tick, allows)
	}
	why := "allow it too"
	switch {
	case missing != nil && missing.Expired(tick) && of == pid:
		why = fmt.Sprintf("its token expired after tick %d, and it is tick %d: allow it again", *missing.Granted.ExpiresAtTick, tick)
	case missing != nil && missing.Expired(tick):
		why = fmt.Sprintf("the token of pid %d, which granted it, expired after tick %d, and it is tick %d: allow it again", of, *missing.Granted.ExpiresAtTick, tick)
	case of != pid:
		why = fmt.Sprintf("pid %d, which granted it, may not do so itself: allow it too", of)
	}
	return schema.Errorf(schema.Forbidden, `pid %d may not call %s: %s with "pwos cap grant %d --add %s"`, pid, what, why, of, pattern)
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
