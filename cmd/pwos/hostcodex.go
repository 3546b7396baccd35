package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/promptware-os/pwos/door/hostfile"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

// codex is OpenAI's Codex.
func codex() *agentHost {
	return &agentHost{
		name: "codex",
		hook: &hookHost{file: hostFile(".codex/hooks.json", "CODEX_HOME", ".codex", "hooks.json"), oldest: "0.169.0", entry: codexHook, judge: judgeCodex},
		mcp:  &mcpHost{file: codexConfig, table: "mcp_servers", toml: true},
		preset: &preset{
			upstream: "openai",
			settings: map[string]string{".codex/config.toml": ""},
			env:      map[string]string{},
			command:  codexCommand,
			keyed:    codexProvider,
		},
	}
}

func codexConfig(project bool) (string, error) {
	return hostFile(".codex/config.toml", "CODEX_HOME", ".codex", "config.toml")(project)
}

// codexHook makes Codex run the command through a shell that denies the tool if the command does not exist or fails.
// Codex itself would continue.
func codexHook(command []string, env [][2]string) []byte {
	return everyTool(view.Object(nil).Text("type", "command").Text("command", codexLine(command, env)).Integer("timeout", int64(hostTime.Seconds())).Close())
}

func codexLine(command []string, env [][2]string) string {
	var words []string
	for _, word := range append(assignments(env), command...) {
		words = append(words, quote.Word(word))
	}
	return "/usr/bin/env " + strings.Join(words, " ") + " || { echo 'pwos: the tool was not allowed' >&2; exit 2; }"
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
	value, err := hostfile.Value(text, "hooks", "state", fmt.Sprintf("%s:pre_tool_use:%d:%d", path, at.group, at.index))
	if err != nil {
		return false, fmt.Sprintf("%s cannot be read: %v", config, err), nil
	}
	const accept = "start codex, and accept the hook"
	state, _ := value.(map[string]any)
	command, _ := view.Text(at.hook["command"])
	timeout, _ := view.As[int64](at.hook["timeout"])
	switch hash, _ := state["trusted_hash"].(string); {
	case hash == "":
		return false, "codex does not trust it: " + accept, nil
	case hash != codexHash(at.matcher, command, timeout):
		return false, "it has changed since codex trusted it: " + accept, nil
	}
	if state["enabled"] == false {
		return true, "hooks.state in " + config + " switches it off", nil
	}
	return true, "", nil
}

// codexHash returns the hash by which Codex knows a hook of a command.
func codexHash(matcher, command string, timeout int64) string {
	hooks := view.Object(nil).Boolean("async", false).Text("command", command).Integer("timeout", timeout).Text("type", "command").Close()
	identity := view.Object(nil).Text("event_name", "pre_tool_use").Raw("hooks", hostfile.Array([][]byte{hooks})).Text("matcher", matcher).Close()
	hash := sha256.Sum256(identity)
	return "sha256:" + hex.EncodeToString(hash[:])
}

// codexCommand adds the preset's options to the command line of Codex, which runs a hook only if the hook's hash is trusted.
func codexCommand(argv []string, d *doors) []string {
	text := func(s string) string { return string(schema.AppendString(nil, s)) }
	line := codexLine(d.hook, d.server.env)
	timeout := int64(hostTime.Seconds())
	hook := fmt.Sprintf(`{type="command",command=%s,timeout=%d}`, text(line), timeout)
	var server []string
	for entry := range bytes.Lines([]byte(d.server.toml())) {
		server = append(server, strings.TrimSpace(string(entry)))
	}
	settings := []string{
		"features.hooks=true",
		`hooks.PreToolUse=[{matcher="*",hooks=[` + hook + `]}]`,
		`hooks.state={"/<session-flags>/config.toml:pre_tool_use:0:0"={enabled=true,trusted_hash="` + codexHash("*", line, timeout) + `"}}`,
		`mcp_servers.pwos={` + strings.Join(append(server, `default_tools_approval_mode="approve"`), ",") + `}`,
		`sandbox_mode="danger-full-access"`,
		"check_for_update_on_startup=false",
	}
	command := argv[:1:1]
	for _, setting := range settings {
		command = append(command, "-c", setting)
	}
	return append(command, argv[1:]...)
}

// codexProvider sets the address of the kernel's upstream as an option, since Codex reads it from no variable.
const codexProvider = `if [ -n "$PWOS_UPSTREAM_OPENAI" ]; then
	program=$1
	shift
	set -- "$program" -c "model_providers.pwos={name=\"OpenAI\",wire_api=\"responses\",base_url=\"$PWOS_UPSTREAM_OPENAI\"}" -c 'model_provider="pwos"' "$@"
fi
`
