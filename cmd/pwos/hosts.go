package main

import (
	"errors"
	"os"
	"path/filepath"
)

// agentHosts are the agent hosts whose own configuration pwos changes, where a user asks for that.
func agentHosts() []*agentHost { return []*agentHost{claude(), codex(), vscode()} }

// agentHost is how pwos is connected to an agent host.
type agentHost struct {
	name string
	hook *hookHost // nil: it asks nobody before it uses a tool
	mcp  *mcpHost  // nil: it has no MCP servers
}

// hostNamed returns the host of a name, or nil.
func hostNamed(name string) *agentHost {
	for _, h := range agentHosts() {
		if h.name == name {
			return h
		}
	}
	return nil
}

// hookNames are the hosts with hooks.
func hookNames() []string { return hostNames(func(h *agentHost) bool { return h.hook != nil }) }

// mcpNames are the hosts with MCP servers.
func mcpNames() []string { return hostNames(func(h *agentHost) bool { return h.mcp != nil }) }

func hostNames(has func(*agentHost) bool) (names []string) {
	for _, h := range agentHosts() {
		if has(h) {
			names = append(names, h.name)
		}
	}
	return names
}

// hookHost describes the hooks in an agent host's configuration. What is in them is the host's preset.
type hookHost struct {
	file  func(project bool) (string, error)
	judge func(path string, at *foundHook) (trusted bool, off string, err error) // of an installed hook
}

// mcpHost describes the MCP servers in an agent host's configuration.
type mcpHost struct {
	file  func(project bool) (string, error)
	table string // name of the table that has the servers by name
	toml  bool
}

// hostFile returns a function that finds a host's file: that of the project, relative to the current directory, or that of the user,
// below the home directory or the directory that a variable names.
func hostFile(project, variable, dir, name string) func(bool) (string, error) {
	return func(ofProject bool) (string, error) {
		if ofProject {
			return filepath.Abs(project)
		}
		in, err := inHome(variable, dir)
		return filepath.Join(in, name), err
	}
}

// inHome returns a path below the user's home directory, or the directory that the variable names if that is set.
func inHome(variable, otherwise string) (string, error) {
	if dir := os.Getenv(variable); variable != "" && dir != "" {
		return filepath.Abs(dir)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.Join(errNoHome, err)
	}
	return filepath.Join(home, otherwise), nil
}

// errNoHome reports that the path of a host's file is unknown.
var errNoHome = errors.New("find the host's configuration: HOME is not set")
