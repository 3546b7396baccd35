package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/promptware-os/pwos/door/hook"
	"github.com/promptware-os/pwos/door/hookrun"
	"github.com/promptware-os/pwos/door/hostfile"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

// codex is OpenAI's Codex.
func codex() *agentHost {
	return &agentHost{
		name: "codex",
		hook: &hookHost{
			file: hostFile(".codex/hooks.json", "CODEX_HOME", ".codex", "hooks.json"), oldest: "0.169.0", entry: codexEntry, judge: judgeCodex,
			// It tells nothing when a tool fails, or when a command is a patch: then the next request to the model does.
			told: []string{hook.PostToolUse, hook.PreModelRequest, hook.Interrupt},
		},
		mcp: &mcpHost{file: codexConfig, table: "mcp_servers", toml: true},
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

// codexHook is a hook in the configuration of Codex.
type codexHook struct {
	event, matcher, command string
	timeout                 int64 // seconds
}

// newCodexHook makes Codex run the command through a shell. A hook that asks denies the tool if the command does not exist or fails;
// Codex itself would continue.
func newCodexHook(event string, command []string, env [][2]string) codexHook {
	var words []string
	for _, word := range append(assignments(env), told(event, command)...) {
		words = append(words, quote.Word(word))
	}
	h := codexHook{event: event, matcher: "*", command: "/usr/bin/env " + strings.Join(words, " "), timeout: int64(hookrun.HostTime.Seconds())}
	switch event {
	case hook.PreToolUse:
		h.command += " || { echo 'pwos: the tool was not allowed' >&2; exit 2; }"
	case hook.Interrupt:
		h.timeout = 3 // Codex allows no more, and says so
	}
	return h
}

func codexEntry(event string, command []string, env [][2]string) []byte {
	h := newCodexHook(event, command, env)
	return everyTool(view.Object(nil).Text("type", "command").Text("command", h.command).Integer("timeout", h.timeout).Close())
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
	value, err := hostfile.Value(text, "hooks", "state", fmt.Sprintf("%s:%s:%d:%d", path, snake(at.event), at.group, at.index))
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
	case hash != (&codexHook{at.event, at.matcher, command, timeout}).hash():
		return false, "it has changed since codex trusted it: " + accept, nil
	}
	if state["enabled"] == false {
		return true, "hooks.state in " + config + " switches it off", nil
	}
	return true, "", nil
}

// hash returns the hash by which Codex knows a hook.
func (h *codexHook) hash() string {
	hooks := view.Object(nil).Boolean("async", false).Text("command", h.command).Integer("timeout", h.timeout).Text("type", "command").Close()
	identity := view.Object(nil).Text("event_name", snake(h.event)).Raw("hooks", hostfile.Array([][]byte{hooks}))
	if strings.HasSuffix(h.event, "ToolUse") { // other events have nothing to match
		identity = identity.Text("matcher", h.matcher)
	}
	hash := sha256.Sum256(identity.Close())
	return "sha256:" + hex.EncodeToString(hash[:])
}

// snake returns the name of an event in the form pre_tool_use.
func snake(event string) string {
	var name []byte
	for i, c := range []byte(event) {
		if i > 0 && 'A' <= c && c <= 'Z' {
			name = append(name, '_')
		}
		name = append(name, c)
	}
	return strings.ToLower(string(name))
}

// codexCommand adds the preset's options to the command line of Codex, which runs a hook only if the hook's hash is trusted.
func codexCommand(argv []string, d *doors) []string {
	text := func(s string) string { return string(schema.AppendString(nil, s)) }
	settings := []string{"features.hooks=true"}
	var trusted []string
	for _, event := range codex().hook.events() {
		h := newCodexHook(event, d.hook, d.server.env)
		settings = append(settings, fmt.Sprintf(`hooks.%s=[{matcher="*",hooks=[{type="command",command=%s,timeout=%d}]}]`, event, text(h.command), h.timeout))
		trusted = append(trusted, fmt.Sprintf(`"/<session-flags>/config.toml:%s:0:0"={enabled=true,trusted_hash="%s"}`, snake(event), h.hash()))
	}
	var server []string
	for entry := range bytes.Lines([]byte(d.server.toml())) {
		server = append(server, strings.TrimSpace(string(entry)))
	}
	settings = append(
		settings,
		"hooks.state={"+strings.Join(trusted, ",")+"}",
		`mcp_servers.pwos={`+strings.Join(append(server, `default_tools_approval_mode="approve"`), ",")+`}`,
		`sandbox_mode="danger-full-access"`,
		"check_for_update_on_startup=false",
	)
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
