package main

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/promptware-os/pwos/door/hook"
	"github.com/promptware-os/pwos/door/hookrun"
	"github.com/promptware-os/pwos/door/hostfile"
	"github.com/promptware-os/pwos/view"
)

// claude is Claude Code.
func claude() *agentHost {
	return &agentHost{
		name: "claude",
		hook: &hookHost{
			file: claudeSettings, oldest: "2.1.330", entry: claudeHook, judge: judgeClaude,
			// It tells nothing when a user interrupts a tool: then the next prompt, or the end of the session, does.
			told: []string{hook.PostToolUse, hook.PostToolUseFailure, hook.PostToolBatch, hook.UserPromptSubmit, hook.SessionEnd},
		},
		mcp: &mcpHost{file: hostFile(".mcp.json", "CLAUDE_CONFIG_DIR", "", ".claude.json"), table: "mcpServers"},
		preset: &preset{
			upstream: "anthropic",
			settings: map[string]string{".claude/settings.json": "{}\n"},
			env: map[string]string{
				"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
				"IS_SANDBOX": "1", // allows root to skip the host's permission prompts
			},
			own:     "--settings",
			command: claudeCommand,
			keyed:   claudeToken,
		},
	}
}

func claudeSettings(project bool) (string, error) {
	return hostFile(".claude/settings.json", "CLAUDE_CONFIG_DIR", ".claude", "settings.json")(project)
}

// claudeHook makes Claude Code run the command without a shell and, if it asks, block the tool if the command cannot start,
// fails or times out. Without onFailure, Claude Code would continue.
func claudeHook(event string, command []string, env [][2]string) []byte {
	entry := view.Object(nil).Text("type", "command").Text("command", "/usr/bin/env").Raw("args", view.Texts(append(assignments(env), told(event, command)...)))
	if event == hook.PreToolUse {
		entry = entry.Text("onFailure", "block")
	}
	return everyTool(entry.Integer("timeout", int64(hookrun.HostTime.Seconds())).Close())
}

// managedClaude is the file of an administrator's settings, which take precedence over all others.
const managedClaude = "/etc/claude-code/managed-settings.json"

// judgeClaude says what switches hooks off in the settings that apply in this directory. Claude Code does not ask its user about a
// hook.
func judgeClaude(path string, _ *foundHook) (trusted bool, off string, err error) {
	user, err := claudeSettings(false)
	if err != nil {
		return false, "", err
	}
	files := []string{managedClaude}
	for _, name := range []string{".claude/settings.local.json", ".claude/settings.json"} {
		file, err := filepath.Abs(name)
		if err != nil {
			return false, "", fmt.Errorf("find settings: %w", err)
		}
		files = append(files, file)
	}
	decided := false
	for _, file := range append(files, user) {
		text, err := settings(file)
		if err != nil {
			return false, "", err
		}
		if raw, err := hostfile.Member(text, "allowManagedHooksOnly"); file == managedClaude && err == nil && string(raw) == "true" && path != file {
			return true, "allowManagedHooksOnly in " + file + " switches off all other hooks", nil
		}
		raw, err := hostfile.Member(text, "disableAllHooks")
		switch {
		case err != nil:
			return true, fmt.Sprintf("%s cannot be read: %v", file, err), nil
		case raw == nil || decided:
		case string(raw) == "true":
			return true, "disableAllHooks in " + file + " switches off all hooks", nil
		default:
			decided = true
		}
	}
	return true, "", nil
}

// claudeCommand adds the preset's options to the command line of Claude Code.
func claudeCommand(argv []string, d *doors) []string {
	hooks := view.Object(nil)
	for _, event := range claude().hook.events() {
		hooks = hooks.Raw(event, hostfile.Array([][]byte{claudeHook(event, d.hook, d.server.env)}))
	}
	settings := view.Object(nil).
		Boolean("disableAllHooks", false).
		Raw("hooks", hooks.Close()).
		Raw("sandbox", view.Object(nil).Boolean("enabled", false).Close()).
		Raw("permissions", view.Object(nil).Raw("allow", view.Texts([]string{"mcp__pwos"})).Close()). // the kernel checks the tools of pwos itself
		Close()
	servers := view.Object(nil).Raw("mcpServers", view.Object(nil).Raw("pwos", d.server.json()).Close()).Close()
	return slices.Concat(argv[:1], []string{"--settings=" + string(settings), "--mcp-config=" + string(servers)}, argv[1:])
}

// claudeToken sets a placeholder for the key that the kernel adds.
const claudeToken = `if [ -n "$PWOS_UPSTREAM_ANTHROPIC" ]; then
	export ANTHROPIC_AUTH_TOKEN="${ANTHROPIC_AUTH_TOKEN-held-by-the-kernel}"
fi
`
