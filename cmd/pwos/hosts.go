package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/promptware-os/pwos/door/hook"
)

// agentHosts are the agent hosts that pwos knows: each is a file, and its word here.
func agentHosts() []*agentHost { return []*agentHost{claude(), codex(), vscode()} }

// agentHost is how pwos is connected to an agent host.
type agentHost struct {
	name   string
	hook   *hookHost // nil: it asks nobody before it uses a tool
	mcp    *mcpHost  // nil: it has no MCP servers
	preset *preset   // nil: it is run as any program
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

// hookHost describes the hooks in an agent host's configuration.
type hookHost struct {
	file   func(project bool) (string, error)
	oldest string // the oldest version that is known to enforce a hook's denial
	// entry returns the element of the settings for an event.
	entry func(event string, command []string, env [][2]string) []byte
	told  []string                                                               // events that end steps (PROTOCOL 12), and deny nothing
	judge func(path string, at *foundHook) (trusted bool, off string, err error) // of an installed hook
}

// events returns the events that a host's hooks are for.
func (h *hookHost) events() []string { return append([]string{hook.PreToolUse}, h.told...) }

// mcpHost describes the MCP servers in an agent host's configuration.
type mcpHost struct {
	file  func(project bool) (string, error)
	table string // name of the table that has the servers by name
	toml  bool
}

// preset describes how to run an agent host that has no support for pwos (PROTOCOL 9, 11). It connects the host to the kernel and turns
// off the host's own sandbox by options of the command line, since these take precedence over any file that the host writes.
type preset struct {
	// upstream is the service whose key the kernel adds, if the agent is granted that.
	upstream string
	settings map[string]string // files below its home that it may only read, with their initial content
	env      map[string]string // in addition to --env
	own      string            // an option that the user may not give, since the preset sets it; "": none
	command  func(argv []string, d *doors) []string
	// keyed is a shell script that configures what only the kernel knows; it is used if the kernel has the key.
	keyed string
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
