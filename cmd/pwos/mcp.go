package main

import "github.com/spf13/cobra"

func newMCP(a *app) *cobra.Command {
	return group("mcp", "let hosts of the Model Context Protocol call the kernel",
		`mcp is the door for hosts of the Model Context Protocol, such as Claude Code, Codex and
VS Code: what they call is checked against what was granted, and recorded. The other way
round it has the tools of MCP servers called as syscalls, the servers confined.`,
		`  pwos mcp serve --as claude --allow 'Memory.*'
  pwos mcp install claude --allow 'Memory.*'
  pwos mcp add fs --dir ~/project -- mcp-server-filesystem .`,
		newMCPServe(a), newMCPInstall(a), newMCPUninstall(a),
		newMCPAdd(a), newMCPLogin(a), newMCPImport(a), newMCPLs(a), newMCPDiff(a), newMCPAccept(a), newMCPRm(a), newMCPBridge(a))
}
