// Package preset declares the agent hosts that pwos runs (PROTOCOL 11): how each is started so that its tools ask the kernel first. A
// declaration is facts and texts; nothing here starts a program or touches a file.
package preset

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/promptware-os/pwos/door/hook"
)

// Host declares an agent host. In Args, Env and Files, {{…}} stands for what is known at a start: see Doors.
type Host struct {
	Name    string // of its program, and in Tool:NAME/TOOL
	Package string // of npm
	Tested  string // the version that was found to be as declared
	Oldest  string // an older one may use a tool although its hook denies or fails; "": not known

	Args []string          // precede the user's
	Env  map[string]string // the user's override it
	// Saves are variables under a budget of tokens or dollars, of which each request reserves what its answer may cost at most.
	Saves map[string]string
	// Passes are variables of the user's that it gets too: none has a secret.
	Passes []string
	Files  map[string]string // below its home: it may only read them, and "pwos home import" replaces them

	// Brings are files and directories of the user's set-up that come along, below the home of both: instructions, commands, skills. It may
	// only read them.
	Brings []string
	// Settings are members of a file of the user's settings that come along, in place of that of Files: none runs a program or is a secret.
	Settings Settings

	// MCP is where the user has MCP servers for it, which may be offered by the kernel.
	MCP MCP

	// Sessions is where it keeps the sessions of a project.
	Sessions Sessions

	// Project is a directory of a project with settings that run something as soon as the host starts; "": it asks its user first. It is
	// hidden inside, unless the user trusts the project outside, as Settings.File says.
	Project string

	Headless []string // precede a prompt that it is to do without asking anything

	// Reserved are options that the user may not give, since Args depends on being the only one that sets them.
	Reserved []string

	Events  []string     // of its hooks: the first one asks, and the others tell when a tool has ended
	TurnEnd string       // the event whose hook may have the host go on, with mail that came meanwhile; "": there is none
	Dialect hook.Dialect // of what its hook gets and answers
	// Waits is how long it was seen to wait for a hook that asks, where it is told to; 0: no longer than it is always told to.
	Waits time.Duration
	// FailsOpen: if the hook is missing, crashes or is late, a tool is used. Then the sandbox and the rules about programs are what holds.
	FailsOpen bool

	Upstreams []Upstream // of its model, the preferred one first
	Servers   []string   // that it reaches itself: its model and its login

	Tools Tools
	ACP   *ACP // nil: it has none

	entry func(event string, c *hookCommand) string // an element of the list of hooks for an event, as JSON
	more  func(d *Doors) map[string]string          // what else stands for something
	// script, a shell script, follows where the kernel has the key and the variables of Upstreams alone cannot say how. "$@" is the command.
	script string
}

// Tools are the host's own tools by what they do, as they are named in grants. Others are of no kind.
type Tools struct {
	Read, Write, Run, Search []string
}

// ACP is how a host speaks the Agent Client Protocol: itself, or by an adapter, which starts it.
type ACP struct {
	Args  []string          // make the host speak it; they precede the user's
	Files map[string]string // in place of the host's
	// Unhooked: then it does not run its hook before a tool, so that the kernel is asked only about what it asks permission for.
	Unhooked bool

	Adapter string            // the adapter's program; "": the host speaks it
	Package string            // of npm, of the adapter
	Tested  string            // the adapter's version that was found to be as declared
	Runs    string            // the variable that tells the adapter which program the host is
	Env     map[string]string // of the adapter
}

// Named returns the tools that a request for permission can mean that says only of what kind a tool is; it has at least one name.
func (t *Tools) Named(kind string) []string {
	var names []string
	switch kind {
	case "read":
		names = t.Read
	case "edit", "delete", "move":
		names = t.Write
	case "execute":
		names = t.Run
	case "search", "fetch":
		names = t.Search
	}
	if len(names) == 0 {
		names = []string{"acp/" + kind}
	}
	return names
}

// Settings are members of a file of settings, in JSON, or in TOML where its name ends so.
type Settings struct {
	File    string // below the home
	Members []string
}

// MCP is a member of a file of settings, which has MCP servers by name. Without File there is none.
type MCP struct {
	File   string // below the home; of JSON, or of TOML where its name ends so
	Member string
}

// Sessions are files of a host, each with a session. Without Dir it keeps those of all projects in one.
type Sessions struct {
	Dir     string                   // below the home; {project} stands for a project
	Project func(path string) string // what that is for the project at a path; nil: what List says
	List    string                   // a file of JSON below the home: its member projects has that by path
	Named   bool                     // the files of all projects are there; each begins with the path as cwd, as with Project
	Resume  []string                 // arguments with which it goes on with the latest one
}

// hyphened returns a path as the name of a directory, as Claude Code does.
func hyphened(path string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, path)
}

// Upstream is a service whose key the kernel adds: what its host has in its environment then.
type Upstream struct {
	Name string            // as in Upstream:NAME
	Env  map[string]string // $url is where the kernel serves it
}

// tenMinutes is the longest time for which it was tried that a host waits for its hook.
const tenMinutes = 10 * time.Minute

// held is sent as a key by hosts for which the kernel has the real one.
const held = "held-by-the-kernel"

// Hosts returns the hosts that are declared here.
func Hosts() []*Host {
	return []*Host{claude(), codex(), copilot(), gemini(), opencode(), pi(), qwen()}
}

// Names returns their names.
func Names() (names []string) {
	for _, h := range Hosts() {
		names = append(names, h.Name)
	}
	return names
}

// Named returns the host of a name, or nil.
func Named(name string) *Host {
	hosts := Hosts()
	if i := slices.IndexFunc(hosts, func(h *Host) bool { return h.Name == name }); i >= 0 {
		return hosts[i]
	}
	return nil
}

// Hooked reports whether each of the host's tools asks the kernel, in an editor too.
func (h *Host) Hooked() bool {
	if h.ACP != nil && h.ACP.Unhooked {
		return false
	}
	texts := slices.Concat(h.Args, slices.Collect(maps.Values(h.Env)), slices.Collect(maps.Values(h.Files)))
	return h.entry != nil || slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, "{{ask") })
}

// Grant returns the patterns that allow the host its own tools, and its model where the kernel has the key.
func (h *Host) Grant() []string {
	patterns := []string{"Tool:" + h.Name + "/*"}
	for _, u := range h.Upstreams {
		patterns = append(patterns, "Upstream:"+u.Name)
	}
	return patterns
}
