package hosts_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/internal/testkit"
)

// presetHost is an agent host that pwos knows, and the way to make it do what the model says, without a question of its own, and end.
type presetHost struct {
	name   string
	args   []string
	model  string   // its upstream
	url    string   // added to the model's address, for that
	header string   // of the key
	run    string   // the tool that runs a command
	named  string   // the same in grants
	env    []string // for programs of its own
	login  string   // that the kernel adds, where it is not that of the configuration
}

func presetHosts() []presetHost {
	return []presetHost{
		{name: "claude", args: []string{"-p", "go", "--allowedTools", "Bash"}, model: "anthropic", header: "X-Api-Key", run: "Bash", named: "Bash"},
		{name: "codex", args: []string{"exec", "-m", "x", "--skip-git-repo-check", "go"}, model: "openai", url: "/v1", header: "Authorization: Bearer", run: "exec_command", named: "Bash"},
		{name: "copilot", args: []string{"-p", "go", "--allow-all-tools"}, model: "anthropic", header: "X-Api-Key", run: "bash", named: "Bash", env: []string{"COPILOT_MODEL=x", "COPILOT_OFFLINE=true"}},
		{name: "gemini", args: []string{"-y", "-p", "go"}, model: "gemini", header: "X-Goog-Api-Key", run: "run_shell_command", named: "run_shell_command"},
		{name: "opencode", args: []string{"run", "-m", "anthropic/claude-sonnet-4-5", "go"}, model: "anthropic", header: "X-Api-Key", run: "bash", named: "bash"},
		{name: "pi", args: []string{"-p", "--provider", "anthropic", "--model", "claude-sonnet-4-5", "go"}, model: "anthropic", header: "X-Api-Key", run: "bash", named: "bash"},
		{name: "qwen", args: []string{"-y", "-p", "go"}, model: "openai", url: "/v1", header: "Authorization: Bearer", run: "run_shell_command", named: "run_shell_command", env: []string{"OPENAI_MODEL=x"}},
	}
}

// command is the step that runs a command.
func (h *presetHost) command(line string) step {
	input := object{"command": line, "description": "a command"}
	if h.name == "codex" {
		input = object{"cmd": line}
	}
	return step{tool: h.run, input: input}
}

// holdFor stores the key of the host's model in the kernel.
func (p *place) holdFor(h *presetHost, m *model, wait string) {
	p.t.Helper()
	p.identity()
	p.configure(fmt.Sprintf("[crypto]\nidentity = %q\n[upstream.%s]\nurl = %q\nheader = %q\nfrom = %q\nallow = [\"* /…\"]\n[approval]\nwait = %q\n",
		p.Path("home/.ssh/id_ed25519"), h.model, m.url+h.url, h.header, "vault/"+h.model, wait))
	p.run("sh", "-c", `pwos mem set vault/`+h.model+` "$(printf %s `+canary+` | pwos seal)"`)
}

// TestPresets: each host that pwos knows runs its tools inside, asks about each one and is denied what is not granted, of which its model
// hears the reason; it has the kernel's tools, and its model gets the key that only the kernel has.
func TestPresets(t *testing.T) {
	t.Parallel()
	for _, h := range presetHosts() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			m := newModel(
				t,
				h.command("touch made; sh ./peek"), // a path outside in the command is what some ask their user about
				step{tool: "Memory_Set", input: object{"key": "a", "value": 1}},
				step{tool: h.run, input: h.command("touch denied").input, before: func() {
					p.run("pwos", "cap", "grant", "1", "Memory.Set", "Tool:"+h.name+"/ToolSearch", "Upstream:"+h.model)
				}},
			)
			testkit.Must(t, errors.Join(os.WriteFile(p.Path("outside"), []byte("a secret\n"), 0o600), os.WriteFile(p.Path("project/peek"), []byte("cat ../outside >seen 2>&1; true"), 0o600)))
			p.holdFor(&h, m, "1s")
			args := []string{"run", "--allow", "Memory.Set,Tool:" + h.name + "/*,Upstream:" + h.model}
			for _, one := range h.env {
				args = append(args, "--env", one)
			}
			out := p.run("pwos", append(append(args, "--", h.name), h.args...)...)
			m.expect(out, "", "success", "pwos cap grant 1 --add Tool:"+h.name+"/"+h.named)
			if seen := testkit.ReadFile(t, p.Path("project/seen")); !strings.Contains(seen, "No such file") {
				t.Errorf("outside there is %s", seen)
			}
			for name, want := range map[string]bool{"made": true, "denied": false} {
				if p.exists(name) != want {
					t.Errorf("%s was made: %t\n%s", name, !want, out)
				}
			}
			for _, key := range m.keys {
				if !strings.Contains(key, canary) {
					t.Errorf("the model was asked with the key %q", key)
				}
			}
			log := p.run("pwos", "audit", "log", "--pid", "1", "--limit", "1000")
			for _, want := range []string{`"tool":"` + h.named + `"`, `"tool":"mcp/pwos/Memory_Set"`, `"decision":"deny"`, `"type":"Step.End"`} {
				if !strings.Contains(log, want) {
					t.Errorf("the journal has no %s: %s", want, log)
				}
			}
		})
	}
}

// TestOneCommand: each host runs with nothing but its own arguments, with its tools and those of the kernel, and the key of its model.
func TestOneCommand(t *testing.T) {
	t.Parallel()
	for _, h := range presetHosts() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			m := newModel(
				t, h.command("touch made"), step{tool: "Memory_Set", input: object{"key": "a", "value": 1}},
				h.command("git init -q . 2>/dev/null; git push origin main"),
			)
			p.holdFor(&h, m, "1s")
			p.env = append(p.env, h.env...)
			out := p.run("pwos", append([]string{h.name}, h.args...)...)
			m.expect(out, "", "success", "")
			if asked := p.run("pwos", "approvals", "--all"); strings.Count(asked, `"rule":"coder-push"`) != 1 {
				t.Errorf("before it pushes nobody is asked: %s\n%s", asked, m.results)
			}
			if !p.exists("made") || !strings.Contains(p.run("pwos", "call", "Process.List"), `"intent":"profile:coder"`) {
				t.Errorf("it did not do what it was told, or not with the profile: %s", out)
			}
			key := canary
			if strings.HasSuffix(h.header, "Bearer") {
				key = "Bearer " + key
			}
			m.keyed(key)
			out, err := p.try("sh", "-c", "PATH=$(dirname $(command -v pwos)) pwos "+h.name)
			if err == nil || !strings.Contains(out, h.name+" is not in PATH") || !strings.Contains(out, "npm install -g "+preset.Named(h.name).Package) {
				t.Errorf("without the host: %v: %s", err, out)
			}
		})
	}
}

// TestModules: a hook that is a module of its host denies if the program is missing, fails or dies.
func TestModules(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for name, use := range map[string]string{
		"pi": `import extend from "./pi.mjs"
const on = {}
extend({ on: (event, f) => (on[event] = f), registerProvider() {} })
const why = await on.tool_call({ input: {}, toolName: "bash", toolCallId: "1" }, { cwd: "/", sessionManager: { getSessionId: () => "s" } })
console.log(why ? why.block && why.reason : "allowed")`,
		"opencode": `import { pwos } from "./opencode.mjs"
const plugin = await pwos({ directory: "/" })
try {
  await plugin["tool.execute.before"]({ tool: "bash", sessionID: "s", callID: "1" }, { args: {} })
  console.log("allowed")
} catch (e) { console.log(e.message) }`,
	} {
		for hook, want := range map[string]string{"/nonexistent": "cannot be started", "/bin/false": "was not allowed", "/bin/true": "allowed", "die": "was not allowed"} {
			command := []string{hook}
			if hook == "die" {
				command = []string{"/bin/sh", "-c", "echo a reason; kill -9 $$"}
			}
			s, err := preset.Named(name).Start(&preset.Doors{Server: []string{"/s"}, Hook: command, Home: "/h"})
			testkit.Must(t, errors.Join(err, os.WriteFile(p.Path("project/"+name+".mjs"), []byte(s.Files[".pwos/"+name+".js"]), 0o600),
				os.WriteFile(p.Path("project/use.mjs"), []byte(use), 0o600)))
			if out := p.run("node", "use.mjs"); !strings.Contains(out, want) {
				t.Errorf("%s with %s says %q, want %q", name, hook, out, want)
			}
		}
	}
}
