package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"sync"

	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// OwnServer is the name of the MCP server of pwos in the configurations of hosts. The name proves nothing: another server may
// have it too.
const OwnServer = "pwos"

// HostTool returns the name in grants of a tool of a host: the host's own, and mcp/SERVER/TOOL for the tool of an MCP server,
// which hosts name mcp__SERVER__TOOL. A name that can be cut in more than one way keeps the host's form: it may be that of
// another server.
func HostTool(name string) string {
	rest, ok := strings.CutPrefix(name, "mcp__")
	if !ok || cuts(rest) != 1 || strings.Contains(name, "/") {
		return name
	}
	server, tool, _ := strings.Cut(rest[1:], "__") // a server has a name
	return "mcp/" + rest[:1] + server + "/" + tool
}

// cuts counts the ways to cut SERVER__TOOL in two.
func cuts(name string) (n int) {
	for i := 1; i+2 < len(name); i++ {
		if name[i:i+2] == "__" {
			n++
		}
	}
	return n
}

// MCPTool returns the server and the tool of a name mcp/SERVER/TOOL. clear is false if the host's form of the name can be that of
// another server.
func MCPTool(name string) (server, tool string, clear bool) {
	rest, ok := strings.CutPrefix(name, "mcp/")
	if !ok {
		return "", "", true
	}
	server, tool, _ = strings.Cut(rest, "/")
	return server, tool, cuts(server+"__"+tool) == 1
}

// longestServed is the longest name of a tool that hosts accept: ^[A-Za-z0-9_-]{1,64}$.
const longestServed = 64

// ServedName returns the name that "pwos mcp serve" gives a syscall or a path: with an underscore for each character that is not
// allowed. Where that is too long, has two in a row, or is another one's, it has the form marked, which ends in a hash of the target.
func ServedName(target string) (name, marked string) {
	name = strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-':
			return r
		}
		return '_'
	}, target)
	clear := strings.Join(strings.FieldsFunc(name, func(r rune) bool { return r == '_' }), "_") // else the host's form can be cut otherwise
	sum := sha256.Sum256([]byte(target))
	hash := "_" + hex.EncodeToString(sum[:4])
	marked = strings.TrimLeft(strings.TrimRight(clear[:min(len(clear), longestServed-len(hash))], "_")+hash, "_")
	if len(name) > longestServed || clear != name {
		name = marked
	}
	return name, marked
}

// Served reports whether "pwos mcp serve" offers a syscall as a tool. A host cannot receive what subscriptions push, and mail among
// that would be lost.
func Served(typ string) bool {
	row, ok := Lookup(typ)
	return !strings.HasSuffix(typ, ".Subscribe") && typ != ProcessAttach.Type && (!ok || row.Callable())
}

// ToolUseInput is the data of Host.ToolUse.
type ToolUseInput struct {
	Target
	Host    string  `json:"host" keep:"always" minlen:"1" maxlen:"64" doc:"The agent host that asks, such as claude or codex: letters, digits, _, -, . and :."`
	Session string  `json:"session" keep:"always" maxlen:"256" doc:"Its session, as it names it."`
	Use     *string `json:"use,omitzero" keep:"always" minlen:"1" maxlen:"256" doc:"The use of the tool, as the host names it, and as in Step.Begin."`
	Tool    string  `json:"tool" keep:"always" minlen:"1" maxlen:"256" doc:"The tool that it is about to use, such as Bash; of an MCP server's mcp/SERVER/TOOL."`
	Input   Value   `json:"input" keep:"always" doc:"Input of the tool, any JSON value. It is recorded unchanged."`
	// Cut has the names of the members that were shortened to fit a line: rules cannot check them.
	Cut []string `json:"cut,omitzero" keep:"always" doc:"Members of input that were cut to a beginning or a digest; * means the whole input."`
	Cwd string   `json:"cwd,omitzero" keep:"always" maxlen:"4096" doc:"Directory that the tool runs in, absolute; absent: not known."`
	// Binds is added by the kernel, so that an approval of a command is one of the files that it runs.
	Binds Value `json:"binds,omitzero" keep:"always" doc:"Of a tool that runs a command: a CommandFiles, what the kernel has read of the files that the command names. Only the kernel adds it, if a rule can ask."`
}

// CommandFiles is what an approval of a command binds of the files that the command names.
type CommandFiles struct {
	Files   []BoundFile `json:"files,omitzero" keep:"always" doc:"Files that the agent may write, as they are now."`
	Unbound string      `json:"unbound,omitzero" keep:"always" doc:"Why contents that the command may use are not bound; absent: those of all files that it names are."`
}

// BoundFile is a file of CommandFiles.
type BoundFile struct {
	Path   string `json:"path" keep:"always" doc:"Its path."`
	Digest string `json:"digest" keep:"always" doc:"SHA-256 of its content, in the form sha256-<base64>."`
	Size   int64  `json:"size" keep:"always" doc:"Bytes."`
}

// ToolUseOutput is the answer of Host.ToolUse.
type ToolUseOutput struct {
	Decision string `json:"decision" keep:"always" enum:"allow deny" doc:"What the host is to do."`
	Reason   string `json:"reason" keep:"always" doc:"Why, and what the operator can do about a denial."`
}

// The values of ToolUseOutput.Decision.
const (
	ToolAllow = "allow"
	ToolDeny  = "deny"
)

// ToolDetail is the detail of a fault that names the tool of an agent host whose use was refused.
const ToolDetail = "tool"

// Deciding is an input whose reply is a decision: some refusals of the call are answered with a reply, so that the caller can
// continue. The journal has the refusal as the error that it is.
type Deciding interface {
	// Refused returns the reply to a refused call; nil: the caller gets the error.
	Refused(why *fault.Fault) Value
}

// Refused returns the decision to deny the tool, if that is what the call was refused for.
func (in *ToolUseInput) Refused(why *fault.Fault) Value {
	if why.Detail(ToolDetail) == "" {
		return nil
	}
	reply := AppendString([]byte(`{"decision":`), ToolDeny)
	return append(AppendString(append(reply, `,"reason":`...), why.Text()), '}')
}

// The syscalls of this file.
var HostToolUse = NewCommand[ToolUseInput, ToolUseOutput](Syscall{
	Type: "Host.ToolUse", Domain: Kernel,
	Script:      "scripts/hook.txtar",
	Description: "Asks whether an agent host may use one of its own tools. The grant Host.ToolUse allows all, Tool:HOST/TOOL one. The host is trusted to ask and to obey.",
})

// toolName is a tool's or a host's part of a pattern Tool:HOST/TOOL. A host passes on what its model has written, so a name
// that no shell, terminal or path interprets is all that may be repeated.
var toolName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_:.-]*[A-Za-z0-9_:-][A-Za-z0-9_:.-]*$`) })

// Check refuses names that cannot be in a grant. It does not repeat them.
func (in *ToolUseInput) Check() *fault.Fault {
	const are = "must be letters, digits, _, -, . and :"
	if !toolName().MatchString(in.Host) {
		return jsontype.Invalid("host", are)
	}
	for part := range strings.SplitSeq(in.Tool, "/") {
		if !toolName().MatchString(part) {
			return jsontype.Invalid("tool", are+", in parts that a slash separates")
		}
	}
	return nil
}
