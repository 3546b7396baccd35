package preset

import (
	"fmt"

	"github.com/promptware-os/pwos/door/hook"
)

// claude is Claude Code.
func claude() *Host {
	return &Host{
		Name: "claude", Package: "@anthropic-ai/claude-code", Tested: "2.1.332", Oldest: "2.1.330",
		Args: []string{
			// The kernel checks the tools of pwos itself.
			`--settings={"disableAllHooks":false,"hooks":{{hooks}},"sandbox":{"enabled":false},"permissions":{"allow":["mcp__pwos"]}}`,
			`--mcp-config={"mcpServers":{"pwos":{{mcp}}}}`,
		},
		Env: map[string]string{
			"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
			"IS_SANDBOX": "1", // allows root to skip the host's permission prompts
		},
		Saves:  map[string]string{"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "32000"}, // it asks for 128000
		Passes: []string{"ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "CLAUDE_CODE_MAX_OUTPUT_TOKENS"},
		Files:  map[string]string{".claude/settings.json": "{}\n"},
		Brings: []string{
			".claude/CLAUDE.md", ".claude/rules", ".claude/commands", ".claude/skills", ".claude/agents", ".claude/output-styles",
		},
		Settings: Settings{File: ".claude/settings.json", Members: []string{
			"alwaysThinkingEnabled", "attribution", "cleanupPeriodDays", "effortLevel", "includeCoAuthoredBy", "language", "model", "outputStyle", "permissions",
			"prefersReducedMotion", "respectGitignore", "showTurnDuration", "spinnerTipsEnabled", "theme", "verbose",
		}},
		Reserved: []string{"--settings"},
		// It tells nothing when a user interrupts a tool: then the next prompt, or the end of the session, does.
		Events:  []string{hook.PreToolUse, hook.PostToolUse, hook.PostToolUseFailure, hook.PostToolBatch, hook.UserPromptSubmit, hook.SessionEnd},
		TurnEnd: hook.Stop,
		Dialect: hook.Dialect{Failures: true},
		Upstreams: []Upstream{
			{"claude", map[string]string{"ANTHROPIC_BASE_URL": "$url", "CLAUDE_CODE_OAUTH_TOKEN": held}},
			{"anthropic", map[string]string{"ANTHROPIC_BASE_URL": "$url", "ANTHROPIC_AUTH_TOKEN": held}},
		},
		Servers:  []string{"api.anthropic.com", "claude.ai", "platform.claude.com", "console.anthropic.com"},
		MCP:      MCP{File: ".claude.json", Member: "mcpServers"},
		Sessions: Sessions{Dir: ".claude/projects/{project}", Project: hyphened, Resume: []string{"--continue"}},
		Waits:    tenMinutes,
		Headless: []string{"-p"},
		Tools: Tools{
			Read: []string{"Read"}, Write: []string{"Edit", "MultiEdit", "NotebookEdit", "Write"},
			Run: []string{"Bash"}, Search: []string{"Glob", "Grep", "ToolSearch", "WebSearch"},
		},
		ACP: &ACP{
			Adapter: "claude-agent-acp", Package: "@agentclientprotocol/claude-agent-acp", Tested: "0.101.0", Runs: "CLAUDE_CODE_EXECUTABLE",
			Env:   map[string]string{"CLAUDE_AGENT_ACP_PROTOCOL": "v1"},
			Files: map[string]string{".claude/settings.json": `{"permissions":{"defaultMode":"default"}}` + "\n"}, // else another model decides first
		},
		entry: claudeEntry,
	}
}

// claudeEntry makes Claude Code run the command without a shell and, if it asks, block the tool if the command cannot start, fails or
// times out. Without onFailure, Claude Code would continue.
func claudeEntry(_ string, c *hookCommand) string {
	failure := ""
	if c.asks {
		failure = `"onFailure":"block",`
	}
	return everyTool(fmt.Sprintf(`"command":%s,"args":%s,%s"timeout":%d`, jsonText(c.words[0]), jsonList(c.words[1:]), failure, c.seconds()))
}
