package kernel

import (
	"slices"
	"strings"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// AuthorizeTool is Authorize for a use of a tool of an agent host, which is granted by its name. A process without a grant for
// any tool may not even ask. serves reports whether "pwos mcp serve" offers a tool of that name.
func AuthorizeTool(processes Processes, pid int64, token *Token, in *schema.ToolUseInput, tick int64, serves func(string) bool) *fault.Fault {
	row, name := schema.HostToolUse.Row(), in.Host+"/"+in.Tool
	invalid := in.Check() // of a name that Capability.Check asks about; that of a call was refused when it was decoded
	pattern := toolWord + ":" + name
	doubt := doubtful(in.Tool, serves)
	named := func(g *schema.TokenGrant) bool { return toolPattern(g, in, doubt) != "" }
	switch none := Authorize(processes, pid, token, row, tick); {
	case none != nil && none.Kind == fault.Forbidden && invalid == nil && living(processes, pid):
		return lacks(pid, token, tick, row.Type, pattern, named) // whose fix names the tool, and not all tools
	case none != nil:
		return none
	case invalid != nil:
		return invalid
	case pid == Operator, token.may(tick, named):
		return nil
	}
	return lacks(pid, token, tick, "the tool "+name+doubt, pattern, named).With(schema.ToolDetail, name)
}

// toolPattern returns the first pattern of a grant that includes a tool, "" if none does. A tool whose server is in doubt is in no
// grant of a server's tools: only in one of its own name, and in one of all tools of the host.
func toolPattern(g *schema.TokenGrant, in *schema.ToolUseInput, doubt string) string {
	pattern, all := toolWord+":"+in.Host+"/"+in.Tool, toolWord+":"+in.Host+"/"+everything
	if doubt != "" && !slices.Contains(g.AllowedSyscalls, pattern) {
		return including(g.AllowedSyscalls, all)
	}
	return including(g.AllowedSyscalls, pattern)
}

// doubtful says why a tool may be another server's than its name says, "" if that is not known.
func doubtful(tool string, serves func(string) bool) string {
	switch server, name, clear := schema.MCPTool(tool); {
	case !clear:
		return ", whose server is not clear from its name,"
	case server == schema.OwnServer && !serves(name):
		return `, which "pwos mcp serve" does not offer, so that another server has the name pwos,`
	}
	return ""
}

// Serves returns a function that reports whether "pwos mcp serve" would offer a tool to the holder of a token, or would if a
// syscall were granted.
func Serves(registry Registry, origin string, token *Token, tick int64) func(tool string) bool {
	return func(tool string) bool {
		is := func(target string) bool {
			name, marked := schema.ServedName(target)
			return schema.Served(target) && (tool == name || tool == marked)
		}
		if slices.ContainsFunc(schema.Syscalls(), func(row *schema.Syscall) bool { return is(row.Type) }) {
			return true
		}
		if registry != nil && slices.ContainsFunc(registry.RegisteredIn(origin), is) {
			return true
		}
		return token != nil && slices.ContainsFunc(token.Effective(tick).AllowedSyscalls, func(pattern string) bool {
			word, path, _ := splitPattern(pattern)
			return word == callWord && !strings.HasSuffix(path, everything) && is(path)
		})
	}
}
