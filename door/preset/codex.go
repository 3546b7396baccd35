package preset

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/door/hook"
)

// codex is OpenAI's Codex.
func codex() *Host {
	// It tells nothing when a tool fails, or when a command is a patch: then the next request to the model does.
	events := []string{hook.PreToolUse, hook.PostToolUse, hook.UserPromptSubmit, hook.PreModelRequest, hook.Interrupt}
	args := []string{"-c", "features.hooks=true"}
	for _, event := range append(slices.Clip(events), hook.Stop) {
		args = append(args, "-c", "hooks."+event+"={{codex."+event+"}}")
	}
	return &Host{
		Name: "codex", Package: "@openai/codex", Tested: "0.171.0", Oldest: "0.169.0",
		Args: append(args, "-c", "hooks.state={{codex.state}}", "-c", "mcp_servers.pwos={{codex.mcp}}", "-c", "projects={{codex.projects}}",
			"-c", `sandbox_mode="danger-full-access"`, "-c", "check_for_update_on_startup=false"),
		Files:   map[string]string{".codex/config.toml": ""},
		Project: ".codex",
		Brings:  []string{".codex/AGENTS.md", ".codex/prompts"},
		Settings: Settings{File: ".codex/config.toml", Members: []string{
			"hide_agent_reasoning", "model", "model_reasoning_effort", "model_reasoning_summary", "model_verbosity", "personality", "show_raw_agent_reasoning",
		}},
		Events:    events,
		TurnEnd:   hook.Stop,
		FailsOpen: true,
		Upstreams: []Upstream{{"codex", map[string]string{"PWOS_MODEL_URL": "$url"}}, {"openai", map[string]string{"PWOS_MODEL_URL": "$url"}}},
		Servers:   []string{"api.openai.com", "auth.openai.com", "chatgpt.com"},
		MCP:       MCP{File: ".codex/config.toml", Member: "mcp_servers"},
		Sessions:  Sessions{Dir: ".codex/sessions", Named: true, Resume: []string{"resume", "--last"}},
		Waits:     tenMinutes,
		Headless:  []string{"exec", "--skip-git-repo-check"},
		ACP: &ACP{
			Adapter: "codex-acp", Package: "@agentclientprotocol/codex-acp", Tested: "2.6.0", Runs: "CODEX_PATH",
			Env: map[string]string{"INITIAL_AGENT_MODE": "agent-full-access", "NO_BROWSER": "1"}, // its own sandbox cannot be made in one
		},
		Tools: Tools{Write: []string{"apply_patch"}, Run: []string{"Bash"}},
		entry: codexEntry,
		more:  codexMore,
		// It reads the address from no variable. Without a login of its own it sends the same requests, and asks for none.
		script: `if [ -n "$PWOS_MODEL_URL" ]; then
	program=$1
	shift
	set -- "$program" -c "model_providers.pwos={name=\"OpenAI\",wire_api=\"responses\",base_url=\"$PWOS_MODEL_URL\"}" -c 'model_provider="pwos"' "$@"
fi
`,
	}
}

// CodexHook is a hook in the configuration of Codex.
type CodexHook struct {
	Event, Matcher, Command string
	Timeout                 int64 // seconds
}

// newCodexHook makes Codex run the command through a shell, since Codex continues if that fails.
func newCodexHook(event string, c *hookCommand) CodexHook {
	h := CodexHook{Event: event, Matcher: "*", Command: c.shell(), Timeout: int64(c.seconds())}
	if event == hook.Interrupt {
		h.Timeout = 3 // Codex allows no more, and says so
	}
	return h
}

func codexEntry(event string, c *hookCommand) string {
	h := newCodexHook(event, c)
	return everyTool(fmt.Sprintf(`"command":%s,"timeout":%d`, jsonText(h.Command), h.Timeout))
}

// codexMore returns the hooks with their hashes, since Codex runs none whose hash is not trusted, and the server, as values of TOML. Each
// JSON text here is one of TOML too, since none has an escaped slash.
func codexMore(d *Doors) map[string]string {
	all := make(map[string]string)
	var trusted, env []string
	host := codex()
	events := host.Events
	if all["codex."+host.TurnEnd] = "[]"; d.Mail {
		events = append(slices.Clip(events), host.TurnEnd)
	}
	for _, event := range events {
		h := newCodexHook(event, newHookCommand(event, d.Hook, d.Env, d.waits(host)))
		all["codex."+event] = fmt.Sprintf(`[{matcher="*",hooks=[{type="command",command=%s,timeout=%d}]}]`, jsonText(h.Command), h.Timeout)
		trusted = append(trusted, fmt.Sprintf(`"/<session-flags>/config.toml:%s:0:0"={enabled=true,trusted_hash="%s"}`, h.Key(), h.Hash()))
	}
	for _, one := range d.Env {
		env = append(env, one[0]+"="+jsonText(one[1]))
	}
	var projects []string
	for _, dir := range d.Trusted { // it asks otherwise, and could not write the answer into its settings
		projects = append(projects, jsonText(dir)+`={trust_level="trusted"}`)
	}
	all["codex.projects"] = "{" + strings.Join(projects, ",") + "}"
	all["codex.state"] = "{" + strings.Join(trusted, ",") + "}"
	all["codex.mcp"] = fmt.Sprintf(`{command=%s,args=%s,env={%s},default_tools_approval_mode="approve"}`,
		jsonText(d.Server[0]), jsonList(d.Server[1:]), strings.Join(env, ","))
	return all
}

// Hash returns the hash by which Codex knows a hook.
func (h *CodexHook) Hash() string {
	matcher := ""
	if strings.HasSuffix(h.Event, "ToolUse") { // other events have nothing to match
		matcher = `,"matcher":` + jsonText(h.Matcher)
	}
	hash := sha256.Sum256(fmt.Appendf(nil, `{"event_name":"%s","hooks":[{"async":false,"command":%s,"timeout":%d,"type":"command"}]%s}`,
		h.Key(), jsonText(h.Command), h.Timeout, matcher))
	return "sha256:" + hex.EncodeToString(hash[:])
}

// Key returns the name of the hook's event in the form pre_tool_use.
func (h *CodexHook) Key() string {
	var name []byte
	for i, c := range []byte(h.Event) {
		if i > 0 && 'A' <= c && c <= 'Z' {
			name = append(name, '_')
		}
		name = append(name, c)
	}
	return strings.ToLower(string(name))
}
