package preset

import (
	"fmt"

	"github.com/promptware-os/pwos/door/hook"
)

// qwen is Qwen Code.
func qwen() *Host {
	return &Host{
		Name: "qwen", Package: "@qwen-code/qwen-code", Tested: "0.24.4", Oldest: "0.24.4",
		Env:    map[string]string{"QWEN_CODE_SYSTEM_SETTINGS_PATH": "{{home}}/.qwen/pwos.json", "QWEN_SANDBOX": "false", "QWEN_CODE_SUPPRESS_YOLO_WARNING": "1"},
		Passes: []string{"OPENAI_MODEL", "QWEN_MODEL"},
		Files: map[string]string{
			".qwen/pwos.json": `{"disableAllHooks":false,"hooks":{{hooks}},"tools":{"toolSearch":{"enabled":false}},"general":{"enableAutoUpdate":false},"privacy":{"usageStatisticsEnabled":false},` +
				`"mcpServers":{"pwos":{"command":{{mcp.command}},"args":{{mcp.args}},"env":{{mcp.env}},"trust":true}}}` + "\n",
		},
		Events:    []string{hook.PreToolUse, hook.PostToolUse, hook.PostToolUseFailure, hook.UserPromptSubmit, hook.SessionEnd},
		Dialect:   hook.Dialect{Failures: true},
		Brings:    []string{".qwen/QWEN.md", ".qwen/commands", ".qwen/skills", ".qwen/agents"},
		FailsOpen: true,
		Upstreams: []Upstream{{"openai", map[string]string{"OPENAI_BASE_URL": "$url", "OPENAI_API_KEY": held, "QWEN_DEFAULT_AUTH_TYPE": "openai"}}},
		Servers:   []string{"dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "chat.qwen.ai", "portal.qwen.ai"},
		MCP:       MCP{File: ".qwen/settings.json", Member: "mcpServers"},
		Sessions:  Sessions{Dir: ".qwen/projects/{project}/chats", Project: hyphened, Resume: []string{"--continue"}},
		Headless:  []string{"-y", "-p"},
		Tools: Tools{
			Read: []string{"list_directory", "read_file", "read_many_files"}, Write: []string{"edit", "notebook_edit", "write_file"},
			Run: []string{"run_shell_command"}, Search: []string{"glob", "grep_search"},
		},
		ACP: &ACP{Args: []string{"--acp", "--approval-mode", "default"}}, // else another model decides first
		entry: func(_ string, c *hookCommand) string {
			return everyTool(fmt.Sprintf(`"command":%s,"timeout":%d`, jsonText(c.shell()), c.seconds()))
		},
	}
}
