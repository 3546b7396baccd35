package preset

import (
	"fmt"

	"github.com/promptware-os/pwos/door/hook"
)

// gemini is Gemini CLI. Its file of system settings counts only if it is root's, so that hook and server are an extension in its home.
func gemini() *Host {
	settings := `{"security":{%s"auth":{"selectedType":"gemini-api-key"}},"general":{"enableAutoUpdate":false},"privacy":{"usageStatisticsEnabled":false}}` + "\n"
	return &Host{
		Name: "gemini", Package: "@google/gemini-cli", Tested: "0.61.0", Oldest: "0.61.0",
		Env:    map[string]string{"GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_SANDBOX": "false"},
		Passes: []string{"GEMINI_MODEL"},
		Files: map[string]string{
			".gemini/settings.json":                         fmt.Sprintf(settings, ""),
			".gemini/extensions/pwos/gemini-extension.json": `{"name":"pwos","version":"1.0.0","mcpServers":{"pwos":{"command":{{mcp.command}},"args":{{mcp.args}},"env":{{mcp.env}}}}}` + "\n",
			".gemini/extensions/pwos/hooks/hooks.json":      `{"hooks":{{hooks}}}` + "\n",
		},
		// It tells nothing when a tool fails: then the next request to the model does.
		Brings:    []string{".gemini/GEMINI.md", ".gemini/commands"},
		Events:    []string{hook.BeforeTool, hook.AfterTool, hook.BeforeModel, hook.BeforeAgent, hook.SessionEnd},
		FailsOpen: true,
		Upstreams: []Upstream{{"gemini", map[string]string{"GOOGLE_GEMINI_BASE_URL": "$url", "GEMINI_API_KEY": held}}},
		Servers:   []string{"generativelanguage.googleapis.com"},
		MCP:       MCP{File: ".gemini/settings.json", Member: "mcpServers"},
		Sessions:  Sessions{Dir: ".gemini/tmp/{project}", List: ".gemini/projects.json", Resume: []string{"--resume", "latest"}},
		Waits:     tenMinutes,
		Headless:  []string{"-y", "-p"},
		Tools: Tools{
			Read: []string{"list_directory", "read_file", "read_many_files"}, Write: []string{"replace", "write_file"},
			Run: []string{"run_shell_command"}, Search: []string{"glob", "google_web_search", "grep_search"},
		},
		ACP: &ACP{Args: []string{"--acp"}, Unhooked: true, Files: map[string]string{".gemini/settings.json": fmt.Sprintf(settings, `"disableYoloMode":true,`)}},
		entry: func(_ string, c *hookCommand) string {
			return everyTool(fmt.Sprintf(`"command":%s,"timeout":%d`, jsonText(c.shell()), 1000*c.seconds()))
		},
	}
}
