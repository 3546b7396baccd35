package preset

import "strings"

import "github.com/promptware-os/pwos/door/hook"

// pi is pi, whose extensions block a tool if they fail.
func pi() *Host {
	return &Host{
		Name: "pi", Package: "@earendil-works/pi-coding-agent", Tested: "1.6.0", Oldest: "1.6.0",
		Args: []string{"-e", "{{home}}/.pwos/pi.js"},
		Env:  map[string]string{"PI_OFFLINE": "1"},
		Files: map[string]string{
			".pwos/pi.js":        put + piExtension,
			".pi/agent/mcp.json": `{"mcpServers":{"pwos":{"command":{{mcp.command}},"args":{{mcp.args}},"env":{{mcp.env}},"exposure":"direct"}}}` + "\n",
		},
		Brings:  []string{".pi/agent/AGENTS.md", ".pi/agent/prompts", ".pi/agent/skills"},
		Events:  []string{hook.PreToolUse, hook.PostToolUse, hook.PostToolUseFailure, hook.UserPromptSubmit, hook.SessionEnd},
		Dialect: hook.Dialect{Failures: true},
		Upstreams: []Upstream{
			{"anthropic", map[string]string{"ANTHROPIC_API_KEY": held}},
			{"openai", map[string]string{"OPENAI_API_KEY": held}},
		},
		Servers:  []string{"api.anthropic.com", "api.openai.com"},
		Sessions: Sessions{Dir: ".pi/agent/sessions/--{project}--", Project: func(path string) string { return strings.ReplaceAll(path[1:], "/", "-") }, Resume: []string{"--continue"}},
		Waits:    tenMinutes,
		Headless: []string{"-p"},
		ACP:      &ACP{Adapter: "pi-acp", Package: "pi-acp", Tested: "0.0.34", Runs: "PI_ACP_PI_COMMAND"},
		Tools:    Tools{Read: []string{"ls", "read"}, Write: []string{"edit", "write"}, Run: []string{"bash"}, Search: []string{"find", "grep", "tool_search"}},
	}
}

// piExtension asks and tells, and names the addresses of the kernel's upstreams.
const piExtension = `
const begun = new Set()

export default function (pi) {
  const at = { anthropic: process.env.PWOS_UPSTREAM_ANTHROPIC, openai: process.env.PWOS_UPSTREAM_OPENAI }
  for (const [name, baseUrl] of Object.entries(at)) if (baseUrl) pi.registerProvider(name, { baseUrl })
  const of = (ctx) => ({ session_id: ctx.sessionManager.getSessionId(), cwd: ctx.cwd })
  pi.on("tool_call", async (use, ctx) => {
    const why = await put(ask, { hook_event_name: "PreToolUse", ...of(ctx), tool_use_id: use.toolCallId, tool_name: use.toolName, tool_input: use.input })
    if (why) return { block: true, reason: why }
    begun.add(use.toolCallId)
  })
  pi.on("tool_execution_end", async (use, ctx) => {
    if (!begun.delete(use.toolCallId)) return
    const event = use.isError ? "PostToolUseFailure" : "PostToolUse"
    await put(tell, { hook_event_name: event, ...of(ctx), tool_use_id: use.toolCallId, tool_name: use.toolName })
  })
  pi.on("before_agent_start", async (event, ctx) => {
    await put(tell, { hook_event_name: "UserPromptSubmit", ...of(ctx), prompt: event.prompt })
  })
  pi.on("session_shutdown", async (_, ctx) => {
    await put(tell, { hook_event_name: "SessionEnd", ...of(ctx) })
  })
}
`
