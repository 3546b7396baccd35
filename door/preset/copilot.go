package preset

import (
	"fmt"

	"github.com/promptware-os/pwos/door/hook"
)

// copilot is GitHub's Copilot CLI. For events named as those of Claude Code it asks in their form, with the names of their tools.
func copilot() *Host {
	return &Host{
		Name: "copilot", Package: "@github/copilot", Tested: "1.0.102", Oldest: "1.0.102",
		Args:   []string{"--plugin-dir", "{{home}}/.pwos/copilot", "--additional-mcp-config", `{"mcpServers":{"pwos":{"type":"stdio","command":{{mcp.command}},"args":{{mcp.args}},"env":{{mcp.env}},"tools":["*"]}}}`, "--allow-tool=pwos"},
		Env:    map[string]string{"COPILOT_AUTO_UPDATE": "false"},
		Passes: []string{"COPILOT_MODEL", "COPILOT_OFFLINE"},
		Files: map[string]string{
			".pwos/copilot/plugin.json": `{"name":"pwos","version":"1.0.0","description":"asks the kernel before a tool is used","hooks":"hooks.json"}` + "\n",
			".pwos/copilot/hooks.json":  `{"version":1,"hooks":{{hooks}}}` + "\n",
		},
		Events:    []string{hook.PreToolUse, hook.PostToolUse, hook.UserPromptSubmit, hook.SessionEnd},
		Dialect:   hook.Dialect{JSON: true, Server: "pwos-"},
		Brings:    []string{".copilot/copilot-instructions.md", ".copilot/agents"},
		FailsOpen: true,
		Upstreams: []Upstream{
			{"anthropic", map[string]string{"COPILOT_PROVIDER_TYPE": "anthropic", "COPILOT_PROVIDER_BASE_URL": "$url", "COPILOT_PROVIDER_API_KEY": held}},
			{"openai", map[string]string{"COPILOT_PROVIDER_TYPE": "openai", "COPILOT_PROVIDER_BASE_URL": "$url", "COPILOT_PROVIDER_API_KEY": held}},
		},
		Servers:  []string{"api.githubcopilot.com", "*.githubcopilot.com", "api.github.com", "github.com"},
		MCP:      MCP{File: ".copilot/mcp-config.json", Member: "mcpServers"},
		Waits:    tenMinutes,
		Headless: []string{"--allow-all-tools", "-p"},
		ACP:      &ACP{Args: []string{"--acp"}},
		Tools:    Tools{Read: []string{"Read"}, Write: []string{"Edit", "Write"}, Run: []string{"Bash"}, Search: []string{"Glob", "Grep"}},
		entry: func(_ string, c *hookCommand) string {
			return fmt.Sprintf(`{"type":"command","bash":%s,"timeoutSec":%d}`, jsonText(c.shell()), c.seconds())
		},
	}
}
