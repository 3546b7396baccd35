package schema

import (
	"strings"

	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// ToolManifest is the description of a user-space syscall, from the file next to it or from its own
// answer.
type ToolManifest struct {
	Name        string `json:"name,omitzero" keep:"always" maxlen:"256" doc:"Name for people. Default: the last segment of its path."`
	Description string `json:"description" keep:"always" minlen:"1" maxlen:"4096" doc:"What it does."`
	Input       Value  `json:"input,omitzero" keep:"always" doc:"JSON Schema of its input. Default: any JSON value."`
	Output      Value  `json:"output,omitzero" keep:"always" doc:"JSON Schema of its output. Default: any JSON value."`
	Undo        string `json:"undo,omitzero" keep:"always" maxlen:"256" doc:"The user-space syscall below root that takes back what a call did, such as os/mail/unsend: it gets an object with call, what Syscall.Call was given, and outcome, what the tool answered. Default: a call cannot be undone."`
}

// DecodeToolManifest decodes a manifest strictly. Raw values alias raw. The error is an InvalidInput or an
// InvalidJSON.
func DecodeToolManifest(raw []byte) (*ToolManifest, *fault.Fault) {
	if !Valid(raw) {
		return nil, fault.ToolManifest.New("the tool's manifest is not one strict JSON value")
	}
	in, err := TypeOf[ToolManifest]().Decode(raw)
	if err != nil {
		return nil, err
	}
	m := in.(*ToolManifest)
	for name, value := range map[string]Value{"input": m.Input, "output": m.Output} {
		if len(value) > 0 && value[0] != '{' {
			return nil, jsontype.Invalid(name, "must be a JSON Schema: an object")
		}
	}
	if _, ok := ToolPath(m.Undo); m.Undo != "" && !ok {
		return nil, jsontype.Invalid("undo", "must be a path below root, such as os/mail/unsend")
	}
	return m, nil
}

// ToolDescription is the answer of a Syscall.Call that requests a description of the tool.
type ToolDescription struct {
	ToolManifest
	URI    string `json:"uri" keep:"always" doc:"The tool, in canonical form."`
	Digest string `json:"digest" keep:"always" doc:"SHA-256 of its bits."`
	Kind   string `json:"kind" keep:"always" enum:"module program connection" doc:"How it runs. connection: an agent provides it."`
}

// ToolSchema returns the JSON Schema of a request's data without the members pid and tick of Target and without references
// (PROTOCOL 11), for a caller that is always the same process and has no files.
func (s *Syscall) ToolSchema() Value {
	_, targeted := s.Input().New().(Targeted)
	return s.Input().Narrow(func(name string) bool {
		return !(targeted && (name == "pid" || name == "tick") || strings.HasSuffix(name, refSuffix))
	}).AppendJSONSchema(nil)
}

// MCPEntry returns the entry of the MCP server of a user-space name: mcp/NAME for mcp/NAME/TOOL and for
// mcp/NAME itself (PROTOCOL 11).
func MCPEntry(name string) (entry string, ok bool) {
	path, ok := ToolPath(name)
	parts := strings.Split(path, "/")
	if !ok || len(parts) < 2 || len(parts) > 3 || parts[0] != "mcp" || !ValidMCPName(parts[1]) {
		return "", false
	}
	return "mcp/" + parts[1], true
}

// ValidMCPName reports whether name is a valid name of an MCP server: at most 64 of a to z, 0 to 9, and -.
func ValidMCPName(name string) bool {
	return name != "" && len(name) <= 64 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// MCPAgent returns the name of the agent that provides an entry: mcp.NAME for mcp/NAME.
func MCPAgent(entry string) string { return strings.Replace(entry, "/", ".", 1) }

// ToolUseInput is the data of Host.ToolUse.
type ToolUseInput struct {
	Target
	Host    string `json:"host" keep:"always" minlen:"1" maxlen:"64" doc:"The agent host that asks, such as claude or codex."`
	Session string `json:"session" keep:"always" maxlen:"256" doc:"Its session, as it names it."`
	Tool    string `json:"tool" keep:"always" minlen:"1" maxlen:"256" doc:"The tool that it is about to use, such as Bash; of an MCP server's mcp/SERVER/TOOL."`
	Input   Value  `json:"input" keep:"always" doc:"Input of the tool, any JSON value. It is recorded unchanged."`
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
