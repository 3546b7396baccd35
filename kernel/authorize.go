package kernel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
)

// Authorize returns nil if pid, holding token (nil if it has none), may call the syscall of row at
// tick, else the fault that the call gets: existence, expiry and permission of CAP 2. It must not
// be called for the kernel's own steps, which no process may call. Quotas are checked by the
// resource domain, which knows what is in use. processes only serve the error's advice: without
// them pid counts as one that can get a grant.
func Authorize(processes Processes, pid int64, token *Token, row *schema.Syscall, tick int64) *fault.Fault {
	switch {
	case processes != nil && pid != Operator && hasEnded(processes.Process(pid)):
		return Ended(pid)
	case row.Internal:
		return refused(fault.CapabilityDenied, pid, row.Type, "it is the kernel's own")
	case pid == Operator, row.Grant == schema.Everyone:
		return nil
	case row.Grant == schema.OperatorOnly:
		return refused(fault.CapabilityOperatorOnly, pid, row.Type, "only the operator may")
	case token == nil && !living(processes, pid):
		return refused(fault.CapabilityDenied, pid, row.Type, BeyondGrant(processes, pid))
	case token == nil || !token.Allows(row, tick):
		return denied(pid, token, row, tick)
	}
	return nil
}

// Callable lists what pid, holding token (nil if it has none), may call at tick: syscalls of the
// kernel and those registered in its origin.
func Callable(registered []string, pid int64, token *Token, tick int64) (out schema.ListOutput) {
	for _, row := range schema.Syscalls() {
		asks := row
		if row == schema.SyscallComplete.Row() || row == schema.SyscallProgress.Row() { // useful only to a process that may register a syscall
			asks = schema.SyscallRegister.Row()
		}
		if row.Callable() && Authorize(nil, pid, token, asks, tick) == nil {
			out.Syscalls = append(out.Syscalls, row.Type)
		}
	}
	for _, name := range registered {
		switch {
		case strings.Contains(name, "/"): // a path
			if AuthorizeCall(pid, token, "os:///"+name, tick) == nil {
				out.Paths = append(out.Paths, name)
			}
		case AuthorizeRegistered(nil, pid, token, name, tick) == nil:
			out.Syscalls = append(out.Syscalls, name)
		}
	}
	if token != nil {
		for _, pattern := range token.Effective(tick).AllowedSyscalls {
			if path, ok := strings.CutPrefix(pattern, callWord+":"); ok {
				out.Paths = append(out.Paths, path)
			}
		}
	}
	slices.Sort(out.Syscalls)
	slices.Sort(out.Paths)
	out.Paths = slices.Compact(out.Paths)
	return out
}

// denied returns the fault of the call of a syscall.
func denied(pid int64, token *Token, row *schema.Syscall, tick int64) *fault.Fault {
	what := row.Type
	if row.Grant == schema.ByName && token != nil {
		what += ", which has to be granted by its name, as no pattern includes it"
	}
	return lacks(pid, token, tick, what, row.Type, func(g *schema.TokenGrant) bool { return grantNames(g, row) })
}

// authorizeProvider returns nil if pid may register a path: the operator, or for an entry of a path the agent that
// provides the path.
func authorizeProvider(processes Processes, pid int64, name string) *fault.Fault {
	if pid == Operator {
		return nil
	}
	p := processes.Process(pid)
	if hasEnded(p) {
		return Ended(pid)
	}
	if entry, ok := schema.MCPEntry(name); ok && entry == name && p != nil && p.ParentPID == Operator && p.AgentID == schema.MCPAgent(entry) {
		return nil
	}
	return fault.CapabilityOperatorOnly.New("pid %d may not register %s: only the operator may register a path", pid, name).
		WithFix(`"pwos mcp add" adds an MCP server`)
}

// AuthorizeRegistered is Authorize for a registered syscall, which is granted by its name, or as a path.
func AuthorizeRegistered(processes Processes, pid int64, token *Token, name string, tick int64) *fault.Fault {
	switch {
	case processes != nil && pid != Operator && hasEnded(processes.Process(pid)):
		return Ended(pid)
	case schema.UserSpace(name):
		return AuthorizeCall(pid, token, "os:///"+name, tick)
	case pid == Operator, token != nil && token.AllowsNamed(name, tick):
		return nil
	case token == nil && !living(processes, pid):
		return refused(fault.CapabilityDenied, pid, name, BeyondGrant(processes, pid))
	}
	return lacks(pid, token, tick, name+", which has to be granted by its name, as no pattern includes it", name,
		func(g *schema.TokenGrant) bool { return anyCovers(g.AllowedSyscalls, name) })
}

// AuthorizeCall returns nil if pid, holding token, may call the user-space syscall of a name at tick: a path below
// root, or another URI, which only Syscall.Call allows.
func AuthorizeCall(pid int64, token *Token, uri string, tick int64) *fault.Fault {
	pattern := schema.CallType
	if path, ok := strings.CutPrefix(uri, "os:///"); ok {
		pattern = callWord + ":" + path
	}
	if pid == Operator || token != nil && token.AllowsNamed(pattern, tick) {
		return nil
	}
	if strings.Contains(pattern, everything) { // a grant of this name would include others
		return refused(fault.CapabilityDenied, pid, uri, "no grant can name it alone, because of the * in it")
	}
	return lacks(pid, token, tick, uri, pattern, func(g *schema.TokenGrant) bool { return anyCovers(g.AllowedSyscalls, pattern) })
}

// AuthorizeName is Authorize for what a name with a word before a colon stands for: Tool:HOST/TOOL or Call:PATH. ok is false for
// other names.
func AuthorizeName(processes Processes, pid int64, token *Token, name string, tick int64, serves func(string) bool) (denied *fault.Fault, ok bool) {
	switch word, rest, _ := splitPattern(name); word {
	case toolWord:
		host, tool, _ := strings.Cut(rest, "/")
		return AuthorizeTool(processes, pid, token, &schema.ToolUseInput{Host: host, Tool: tool}, tick, serves), true
	case callWord:
		if denied := Authorize(processes, pid, token, schema.SyscallCall.Row(), tick); denied != nil {
			return denied, true
		}
		return AuthorizeCall(pid, token, "os:///"+rest, tick), true
	}
	return nil, false
}

// PartlyGranted says that pid may call a syscall only for some names, "" if that is not so.
func PartlyGranted(pid int64, token *Token, row *schema.Syscall, tick int64) string {
	for _, word := range []string{toolWord, callWord} {
		if behind(word) == row.Type && pid != Operator && !token.AllowsNamed(row.Type, tick) {
			return fmt.Sprintf("pid %d may call %s for some names only: ask about one, such as %s:NAME, or about a call with its data", pid, row.Type, word)
		}
	}
	return ""
}

// lacks returns the fault of a call that pid has no grant for. Its fix only adds: it grants pattern to pid or, if
// pid's granter lacks it too, to that granter.
func lacks(pid int64, token *Token, tick int64, what, pattern string, allows func(*schema.TokenGrant) bool) *fault.Fault {
	missing, of := token, pid
	if token != nil {
		missing, of = token.missing(tick, allows)
	}
	id, why, fix := fault.CapabilityDenied, "", "allow it too"
	switch {
	case missing != nil && missing.Expired(tick):
		id, fix = fault.CapabilityExpired, "allow it again"
		whose := "its token"
		if of != pid {
			whose = fmt.Sprintf("the token of pid %d, which granted it,", of)
		}
		why = fmt.Sprintf("%s expired after tick %d, and it is tick %d", whose, *missing.Granted.ExpiresAtTick, tick)
	case of != pid:
		why = fmt.Sprintf("pid %d, which granted it, may not do so itself", of)
	}
	return refused(id, pid, what, why).WithFix("%s with %s", fix, AddCommand(token, of, tick, pattern))
}

// AddCommand returns the command that adds words of pwos cap grant to what pid was granted, for a fault's fix. pid holds
// token, or is one of its granters; what has expired needs new time.
func AddCommand(token *Token, pid, tick int64, words ...string) string {
	for t := token; t != nil; t = t.Granter {
		if t.PID() == pid && t.Expired(tick) {
			words = append(words, "--ttl", "1h")
		}
	}
	return quote.Command(append([]string{"pwos", "cap", "grant", strconv.FormatInt(pid, 10), "--add"}, words...)...)
}

// refused returns the fault of a call that pid may not make; why may be empty.
func refused(id fault.ID, pid int64, what, why string) *fault.Fault {
	if why != "" {
		why = ": " + why
	}
	return id.New("pid %d may not call %s%s", pid, what, why).With("pid", numbered(pid))
}

// hasEnded reports whether a process has ended; one that never existed has not.
func hasEnded(p *schema.Descriptor) bool { return p != nil && p.State == terminated }

// Ended is the fault of a call whose process has ended (PROTOCOL 6). It is not a denial.
func Ended(pid int64) *fault.Fault {
	return fault.ProcessEnded.New("pid %d has ended, and calls nothing any more", pid).WithFix(`"pwos ps" lists the processes`).With("pid", numbered(pid))
}

// NoProcess is the fault of a call about a process that never existed, or that its caller may not see.
func NoProcess(pid int64) *fault.Fault {
	return fault.ProcessNotFound.New("no process has pid %d", pid).WithFix("Process.List lists the processes").With("pid", numbered(pid))
}

// living reports whether pid can be granted something.
func living(processes Processes, pid int64) bool {
	return processes == nil || BeyondGrant(processes, pid) == ""
}

// terminated is the state of a process that has ended (PROTOCOL 6).
const terminated = "TERMINATED"

// BeyondGrant says why nothing can be granted to pid, which never existed or has ended, and what to do instead; "" if
// something can.
func BeyondGrant(processes Processes, pid int64) string {
	switch p := processes.Process(pid); {
	case p == nil:
		return `no process ever had this pid: "pwos ps" lists the processes`
	case p.State == terminated:
		return `it has ended, and nothing can be granted to it: "pwos ps" lists the processes`
	}
	return ""
}

// Visible returns the descriptor of pid if the call may see that process, else nil: the operator
// sees all, an agent those of its origin (ABI 6.4). A process that is not visible must be answered
// exactly as one that never existed.
//
// A forgotten process is visible to the operator only, since its origin is forgotten too.
func Visible(processes Processes, call *Call, pid int64) *schema.Descriptor {
	p := processes.Process(pid)
	if p == nil || call.PID == Operator || p.Origin == call.Origin {
		return p
	}
	return nil
}

// Descends reports whether pid is a child of ancestor, a child's child, and so on. A process does not descend from
// itself; every process descends from the operator; one that has ended keeps its ancestors.
func Descends(processes Processes, pid, ancestor int64) bool {
	for {
		p := processes.Process(pid)
		if p == nil || p.ParentPID >= pid { // a parent is older than its child
			return false
		}
		if p.ParentPID == ancestor {
			return true
		}
		pid = p.ParentPID
	}
}

// Roles that limit a key of the operator's (PROTOCOL 10).
const (
	Viewer   = "viewer"   // may query
	Approver = "approver" // may query and decide approvals
)

// subscriptions are commands that change nothing and push what a query tells.
var subscriptions = []*schema.Syscall{
	schema.AuditSubscribe.Row(), schema.JobSubscribe.Row(), schema.ApprovalSubscribe.Row(),
}

// inRole refuses what the role of the caller's key does not include. Roles include queries and subscriptions, and an
// approver's also deciding approvals. A query that must be granted by name, or that creates a secret, is not
// included.
func inRole(call *Call) *fault.Fault {
	role, row := call.Caller.Role, call.Syscall
	asks := row.Kind == schema.KindQuery && row.Grant != schema.ByName && row != schema.CryptoDerive.Row()
	for _, one := range subscriptions {
		asks = asks || row == one
	}
	if role == "" || asks || role == Approver && row == schema.ApprovalDecide.Row() {
		return nil
	}
	return fault.RoleDenied.New("a key with the role %s may not call %s", role, call.Message.Called()).With("role", role)
}
