package main

import (
	"fmt"
	"path/filepath"

	"github.com/promptware-os/pwos/door/hostfile"
)

// claude is Claude Code.
func claude() *agentHost {
	return &agentHost{
		name: "claude",
		hook: &hookHost{file: claudeSettings, judge: judgeClaude},
		mcp:  &mcpHost{file: hostFile(".mcp.json", "CLAUDE_CONFIG_DIR", "", ".claude.json"), table: "mcpServers"},
	}
}

func claudeSettings(project bool) (string, error) {
	return hostFile(".claude/settings.json", "CLAUDE_CONFIG_DIR", ".claude", "settings.json")(project)
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
