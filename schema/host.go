package schema

// ToolUseInput is the data of Host.ToolUse.
type ToolUseInput struct {
	Target
	Host    string `json:"host" keep:"always" minlen:"1" maxlen:"64" doc:"The agent host that asks, such as claude or codex."`
	Session string `json:"session" keep:"always" maxlen:"256" doc:"Its session, as it names it."`
	Tool    string `json:"tool" keep:"always" minlen:"1" maxlen:"256" doc:"The tool that it is about to use, such as Bash; of an MCP server's mcp/SERVER/TOOL."`
	Input   Value  `json:"input" keep:"always" doc:"What the tool is given, any JSON value. It is recorded as it stands."`
	// Cut is what the host has not sent whole, since a line is short: rules cannot judge it.
	Cut []string `json:"cut,omitzero" keep:"always" doc:"Members of input of which only the beginning or a digest is there; * stands for all of it."`
}

// ToolUseOutput is what Host.ToolUse answers.
type ToolUseOutput struct {
	Decision string `json:"decision" keep:"always" enum:"allow deny" doc:"What the host is to do."`
	Reason   string `json:"reason" keep:"always" doc:"Why, and what the operator can do about a denial."`
}

// The values of ToolUseOutput.Decision.
const (
	ToolAllow = "allow"
	ToolDeny  = "deny"
)

// The syscalls of this file.
var HostToolUse = NewCommand[ToolUseInput, ToolUseOutput](Syscall{
	Type: "Host.ToolUse", Domain: Kernel,
	Script:      "scripts/hook.txtar",
	Description: "Asks whether an agent host may use one of its own tools: where Host.ToolUse is granted it may use all, where Tool:HOST/TOOL is, that one. The host is trusted to ask and to obey.",
})
