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
