package main

import "github.com/spf13/cobra"

func newMCP(a *app) *cobra.Command {
	return group("mcp", "let hosts of the Model Context Protocol call the kernel",
		`mcp is the door for hosts of the Model Context Protocol, such as Claude Code, Codex and
VS Code: what they call is checked against what was granted, and recorded.`,
		`  pwos mcp serve --as claude --allow 'Memory.*'
  pwos mcp install claude --allow 'Memory.*'`,
		newMCPServe(a), newMCPInstall(a), newMCPUninstall(a),
		newMCPAdd(a), newMCPLs(a), newMCPDiff(a), newMCPAccept(a), newMCPRm(a), newMCPBridge(a))
}
