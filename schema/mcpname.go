package schema

import "strings"

// MCPEntry returns the entry that a user-space name belongs to which an MCP server provides: mcp/NAME of mcp/NAME/TOOL, and of mcp/NAME
// itself (PROTOCOL 11).
func MCPEntry(name string) (entry string, ok bool) {
	path, ok := ToolPath(name)
	parts := strings.Split(path, "/")
	if !ok || len(parts) < 2 || len(parts) > 3 || parts[0] != "mcp" || !ValidMCPName(parts[1]) {
		return "", false
	}
	return "mcp/" + parts[1], true
}

// ValidMCPName reports whether name can be that of an MCP server: at most 64 of a to z, 0 to 9, and -.
func ValidMCPName(name string) bool {
	return name != "" && len(name) <= 64 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// MCPAgent is the name of the agent that provides what lies below an entry: mcp.NAME of mcp/NAME.
func MCPAgent(entry string) string { return strings.Replace(entry, "/", ".", 1) }
