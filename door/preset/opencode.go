package preset

import "github.com/promptware-os/pwos/door/hook"

// opencode is opencode.
func opencode() *Host {
	return &Host{
		Name: "opencode", Package: "opencode-ai", Tested: "1.18.33", Oldest: "1.18.33",
		Env: map[string]string{
			"OPENCODE_CONFIG_CONTENT": `{"plugin":["file://{{home:json}}/.pwos/opencode.js"],"autoupdate":false,` +
				`"mcp":{"pwos":{"type":"local","command":{{mcp.argv}},"environment":{{mcp.env}},"enabled":true}}}`,
			"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
		},
		Files: map[string]string{".pwos/opencode.js": put + opencodePlugin},
		Brings: []string{
			".config/opencode/AGENTS.md", ".config/opencode/agent", ".config/opencode/agents", ".config/opencode/command", ".config/opencode/commands",
			".config/opencode/skill", ".config/opencode/skills",
		},
		Reserved:  []string{"--pure"},
		Events:    []string{hook.PreToolUse, hook.PostToolUse, hook.PostToolUseFailure, hook.UserPromptSubmit, hook.PostToolBatch},
		Dialect:   hook.Dialect{Failures: true},
		FailsOpen: true,
		Upstreams: []Upstream{
			{"anthropic", map[string]string{"ANTHROPIC_API_KEY": held}},
			{"openai", map[string]string{"OPENAI_API_KEY": held}},
		},
		Servers:  []string{"api.anthropic.com", "api.openai.com", "opencode.ai"},
		MCP:      MCP{File: ".config/opencode/opencode.json", Member: "mcp"},
		Waits:    tenMinutes,
		Headless: []string{"run"},
		ACP:      &ACP{Args: []string{"acp"}},
		Tools: Tools{
			Read: []string{"list", "read"}, Write: []string{"edit", "patch", "write"}, Run: []string{"bash"}, Search: []string{"glob", "grep", "webfetch", "websearch"},
		},
	}
}

// opencodePlugin asks and tells, and names the addresses of the kernel's upstreams. The tools of a server are named SERVER_TOOL.
const opencodePlugin = `
const named = (tool) => (tool.startsWith("pwos_") ? "mcp__pwos__" + tool.slice(5) : tool)
const begun = new Set()

export const pwos = async ({ directory }) => {
  const told = (event, more) => put(tell, { hook_event_name: event, cwd: directory, ...more })
  return {
    config: async (config) => {
      const at = { anthropic: process.env.PWOS_UPSTREAM_ANTHROPIC && process.env.PWOS_UPSTREAM_ANTHROPIC + "/v1", openai: process.env.PWOS_UPSTREAM_OPENAI }
      for (const [name, baseURL] of Object.entries(at)) {
        if (!baseURL) continue
        config.provider = config.provider || {}
        const provider = (config.provider[name] = config.provider[name] || {})
        provider.options = { baseURL, ...provider.options }
      }
    },
    "tool.execute.before": async (use, { args }) => {
      const why = await put(ask, {
        hook_event_name: "PreToolUse", session_id: use.sessionID, tool_use_id: use.callID, tool_name: named(use.tool), tool_input: args, cwd: directory,
      })
      if (why) throw new Error(why)
      begun.add(use.callID)
    },
    "tool.execute.after": async (use) => {
      if (begun.delete(use.callID)) await told("PostToolUse", { session_id: use.sessionID, tool_use_id: use.callID, tool_name: named(use.tool) })
    },
    "chat.message": async ({ sessionID }, { parts }) => {
      const prompt = parts.filter((part) => part.type === "text").map((part) => part.text).join("\n")
      await told("UserPromptSubmit", { session_id: sessionID, prompt })
    },
    event: async ({ event }) => {
      const part = event.type === "message.part.updated" && event.properties.part
      if (part && part.type === "tool" && part.state.status === "error" && begun.delete(part.callID))
        await told("PostToolUseFailure", { session_id: part.sessionID, tool_use_id: part.callID, tool_name: named(part.tool) })
      if (event.type === "session.idle") await told("PostToolBatch", { session_id: event.properties.sessionID })
    },
  }
}
`
