package main

import (
	"fmt"

	"github.com/promptware-os/pwos/door/hostfile"
	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/view"
)

// codex is OpenAI's Codex.
func codex() *agentHost {
	return &agentHost{
		name: "codex",
		hook: &hookHost{file: hostFile(".codex/hooks.json", "CODEX_HOME", ".codex", "hooks.json"), judge: judgeCodex},
		mcp:  &mcpHost{file: codexConfig, table: "mcp_servers", toml: true},
	}
}

func codexConfig(project bool) (string, error) {
	return hostFile(".codex/config.toml", "CODEX_HOME", ".codex", "config.toml")(project)
}

// judgeCodex says whether Codex trusts the hook, whose hash it keeps once its user has accepted it, and what switches it off.
func judgeCodex(path string, at *foundHook) (trusted bool, off string, err error) {
	config, err := codexConfig(false)
	if err != nil {
		return false, "", err
	}
	text, err := settings(config)
	if err != nil {
		return false, "", err
	}
	on, err := hostfile.Value(text, "features", "hooks")
	if err != nil {
		return false, fmt.Sprintf("%s cannot be read: %v", config, err), nil
	}
	if on == false {
		return true, "features.hooks in " + config + " switches off all hooks", nil
	}
	command, _ := view.Text(at.hook["command"])
	timeout, _ := view.As[int64](at.hook["timeout"])
	installed := preset.CodexHook{Event: at.event, Matcher: at.matcher, Command: command, Timeout: timeout}
	value, err := hostfile.Value(text, "hooks", "state", fmt.Sprintf("%s:%s:%d:%d", path, installed.Key(), at.group, at.index))
	if err != nil {
		return false, fmt.Sprintf("%s cannot be read: %v", config, err), nil
	}
	const accept = "start codex, and accept the hook"
	state, _ := value.(map[string]any)
	switch hash, _ := state["trusted_hash"].(string); {
	case hash == "":
		return false, "codex does not trust it: " + accept, nil
	case hash != installed.Hash():
		return false, "it has changed since codex trusted it: " + accept, nil
	}
	if state["enabled"] == false {
		return true, "hooks.state in " + config + " switches it off", nil
	}
	return true, "", nil
}
