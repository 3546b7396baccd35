package hosts_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// host is an agent host, and the way to run it with a model.
type host struct {
	name string
	run  func(p *place, m *model) string
}

func both() []host {
	return []host{
		{"claude", func(p *place, m *model) string {
			p.env = []string{"ANTHROPIC_BASE_URL=" + m.url}
			return p.run("claude", "-p", "go", "--allowedTools", "mcp__pwos", "Bash")
		}},
		{"codex", func(p *place, m *model) string {
			return p.run("codex", "exec", "-m", "x", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust",
				"-c", "model_provider=s", "-c", `model_providers.s={name="s",base_url="`+m.url+`/v1",wire_api="responses"}`, "go")
		}},
	}
}

// TestServe: a granted call works, a revoked one is refused with its fix, and works again after the fix.
func TestServe(t *testing.T) {
	t.Parallel()
	for _, h := range both() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.run("pwos", "mcp", "install", h.name, "--allow", "Memory.Get,Memory.Set")
			set := object{"key": "a", "value": 1}
			m := newModel(
				t,
				step{tool: "Memory_Set", input: set},
				step{tool: "Memory_Set", input: set, before: func() { p.run("pwos", "cap", "grant", "1", "Memory.Get") }},
				step{tool: "Memory_Set", input: set, before: func() { p.run("pwos", "cap", "grant", "1", "--add", "Memory.Set") }},
				step{tool: "Memory_Get", input: object{"key": "a"}},
			)
			out := h.run(p, m)
			m.expect(out, "success", "pwos cap grant 1 --add Memory.Set", "success", "1")
			if got := p.run("pwos", "call", "Memory.Get", "key=a"); got != "1\n" {
				t.Errorf("memory has %q", got)
			}
			if got := p.run("pwos", "audit", "log", "--pid", "1"); strings.Count(got, `"type":"Memory.Set"`) != 3 {
				t.Errorf("the journal has %s", got)
			}
		})
	}
}

// shell returns the tool with which a host runs a command, and its grant.
func shell(host, command string) step {
	if host == "claude" {
		return step{tool: "Bash", input: object{"command": command}}
	}
	return step{tool: "exec_command", input: object{"cmd": command}}
}

// TestHook: a granted tool is used; another one is denied with its fix; and without a kernel none is used.
func TestHook(t *testing.T) {
	t.Parallel()
	for _, h := range both() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.run("pwos", "hook", "install", h.name)
			p.run("pwos", "spawn", h.name, "--allow", "Memory.Get")
			touch := func(name string, before func()) step {
				s := shell(h.name, "touch "+name)
				s.before = before
				return s
			}
			m := newModel(
				t,
				touch("denied", nil),
				touch("allowed", func() { p.run("pwos", "cap", "grant", "1", "--add", "Tool:"+h.name+"/Bash") }),
				touch("alone", func() { p.run("pwos", "shutdown") }),
			)
			out := h.run(p, m)
			m.expect(out, "pwos cap grant 1 --add Tool:"+h.name+"/Bash", "", "could not be asked")
			for name, want := range map[string]bool{"denied": false, "allowed": true, "alone": false} {
				if _, err := os.Stat(p.Path("project/" + name)); (err == nil) != want {
					t.Errorf("%s was made: %t", name, err == nil)
				}
			}
		})
	}
}

// TestPolicyOfTools: a rule examines the command of a host's own tool, and its advice reaches the host's model.
func TestPolicyOfTools(t *testing.T) {
	t.Parallel()
	for _, h := range both() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			rules := p.Path("home/.config/pwos/policy.cedar")
			testkit.Must(t, os.MkdirAll(filepath.Dir(rules), 0o700))
			testkit.Must(t, os.WriteFile(rules, []byte(`@id("no-rm") @fix("move it to trash/ instead")
forbid(principal, action == Tool::"`+h.name+`/Bash", resource) when { context.args has command && context.args.command like "*rm -rf*" };
`), 0o600))
			testkit.Must(t, os.WriteFile(p.Path("project/kept"), nil, 0o600))
			p.run("pwos", "hook", "install", h.name)
			p.run("pwos", "spawn", h.name, "--allow", "Tool:"+h.name+"/*")
			long := "echo " + strings.Repeat("x", 4000) + "; rm -rf kept"
			m := newModel(t, shell(h.name, "rm -rf kept"), shell(h.name, long), shell(h.name, "touch moved"))
			out := h.run(p, m)
			m.expect(out, "move it to trash/ instead", "context.args.command cannot be judged", "")
			for name, want := range map[string]bool{"kept": true, "moved": true} {
				if _, err := os.Stat(p.Path("project/" + name)); (err == nil) != want {
					t.Errorf("%s is there: %t", name, err == nil)
				}
			}
		})
	}
}

// TestInspector: the protocol's own inspector lists and calls.
func TestInspector(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	cli := func(args ...string) string {
		return p.run("mcp-inspector", append([]string{
			"--cli", "-e", "PWOS_RUNTIME_DIR=" + p.RuntimeDir(), "-e", "PWOS_STATE_DIR=" + p.StateDir(), p.pwos, "mcp", "serve", "--as", "inspector", "--allow", "Memory.*",
		}, args...)...)
	}
	if got := cli("--method", "tools/list"); !strings.Contains(got, `"Memory_Set"`) {
		t.Errorf("tools: %s", got)
	}
	if got := cli("--method", "tools/call", "--tool-name", "Memory_Set", "--tool-arg", "key=a", "--tool-arg", "value=7"); !strings.Contains(got, "success") {
		t.Errorf("call: %s", got)
	}
	if got := p.run("pwos", "call", "Memory.Get", "key=a"); !strings.Contains(got, "7") {
		t.Errorf("memory has %q", got)
	}
}

// TestFiveCommands runs the example of a host outside in docs/doors.md literally.
func TestFiveCommands(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	page, err := os.ReadFile("../../docs/doors.md")
	testkit.Must(t, err)
	_, section, _ := strings.Cut(string(page), "## A host outside")
	_, block, _ := strings.Cut(section, "```console\n")
	block, _, _ = strings.Cut(block, "```")
	commands := strings.Split(strings.TrimSpace(strings.ReplaceAll("\n"+block, "\n$ ", "\n")), "\n")
	if len(commands) != 5 || commands[0] != "go install ./cmd/..." {
		t.Fatalf("the page has %q", commands)
	}
	m := newModel(
		t,
		step{tool: "Memory_Set", input: object{"key": "build", "value": "green"}},
		step{tool: "Bash", input: object{"command": "ls"}},
	)
	p.env = []string{"ANTHROPIC_BASE_URL=" + m.url}
	out := ""
	for _, command := range commands[1:] { // the test has done the first in another way
		out = p.run("sh", "-c", command)
	}
	m.expect(out, "success", `allow it too with \"pwos cap grant 1 --add Tool:claude/Bash\"`)
	log := p.run("pwos", "audit", "log", "--pid", "1")
	for _, want := range []string{`"type":"Memory.Set"`, `"decision":"deny"`} {
		if !strings.Contains(log, want) {
			t.Errorf("the journal has no %s: %s", want, log)
		}
	}
}
