package main

import "runtime"

// vscode is Visual Studio Code.
func vscode() *agentHost {
	return &agentHost{name: "vscode", mcp: &mcpHost{file: vscodeFile, table: "servers"}}
}

// vscodeFile returns the path of VS Code's file of MCP servers.
func vscodeFile(project bool) (string, error) {
	variable, dir := "XDG_CONFIG_HOME", ".config"
	if runtime.GOOS == "darwin" {
		variable, dir = "", "Library/Application Support"
	}
	return hostFile(".vscode/mcp.json", variable, dir, "Code/User/mcp.json")(project)
}
