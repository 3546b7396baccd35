package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/door/hostfile"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// preset describes how to run an agent host that has no support for pwos (PROTOCOL 9, 11). It connects the host to the kernel and turns
// off the host's own sandbox by options of the command line, since these take precedence over any file that the host writes.
type preset struct {
	// upstream is the service whose key the kernel adds, if the agent is granted that.
	upstream string
	settings map[string]string // files below its home that it may only read, with their initial content
	env      map[string]string // in addition to --env
	own      string            // an option that the user may not give, since the preset sets it; "": none
	command  func(argv []string, d *doors) []string
	// keyed is a shell script that configures what only the kernel knows; it is used if the kernel has the key.
	keyed string
}

// doors are the commands that connect a host to the kernel: its MCP server and its hook.
type doors struct {
	server mcpEntry
	hook   []string // it also gets the variables of server
	keyed  bool     // the kernel has the host's key
}

func presets() map[string]preset {
	return map[string]preset{
		"claude": {
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
		"codex": {
			upstream: "openai",
			settings: map[string]string{".codex/config.toml": ""},
			env:      map[string]string{},
			command:  codexCommand,
			keyed:    codexProvider,
		},
	}
}

// setUp completes the job of a program that has a preset.
func (a *app) setUp(f *runFlags, j *job) error {
	host := cmp.Or(j.profile.Preset, filepath.Base(j.args[0]))
	p, ok := presets()[host]
	if !ok {
		return nil
	}
	if i := slices.IndexFunc(j.args[1:], func(arg string) bool { return p.own != "" && (arg == p.own || strings.HasPrefix(arg, p.own+"=")) }); i >= 0 {
		return cli.Misuse("pwos run", fmt.Errorf("%s would override a setting that %s needs in pwos run: use the settings in its home, or --preset none", p.own, host))
	}
	program := &j.input.Program
	if j.profile.Channel == "" { // the host uses standard input and output itself
		fd3 := "fd3"
		program.Channel = &fd3
	}
	home := ""
	if j.profile.Home != "" {
		home = program.Env["HOME"]
	}
	home, err := presetHome(home, cmp.Or(f.name, host))
	if err != nil {
		return err
	}
	settings, err := p.makeSettings(home)
	if err != nil {
		return err
	}
	d, err := a.doors(host)
	if err != nil {
		return err
	}
	if s := program.Sandbox; s.Named() != "off" {
		if s == nil {
			s = new(schema.Sandbox)
			program.Sandbox = s
		}
		s.Write = append(s.Write, home)
		s.Read = append(append(s.Read, d.server.command), settings...)
	}
	d.keyed = program.Sandbox.Network() == "kernel" && (slices.Contains(j.profile.Allow, "Upstream:"+p.upstream) || slices.Contains(j.profile.Allow, "Upstream:*"))
	env := maps.Clone(p.env)
	for _, one := range d.server.env { // for programs that the host starts; the doors have them in their own settings
		env[one[0]] = one[1]
	}
	maps.Copy(env, program.Env)
	env["HOME"] = home
	program.Env = env
	program.Command = p.started(program.Command, d, j.tty)
	return nil
}

// jobControl is a shell script that runs a program as a job, as an interactive shell does. Otherwise
// Ctrl-Z could not stop the program, since the system stops no process whose parent is in another session. When the program stops, the
// script stops the session's leader, which terminal.control detects.
const jobControl = `set -m
"$@"
status=$?
while jobs %1 >/dev/null 2>&1; do
	kill -STOP $$
	fg %1 >/dev/null
	status=$?
done
exit $status`

// started returns the command that starts the program, in a shell if it needs a script.
func (p preset) started(argv []string, d *doors, tty bool) []string {
	argv = p.command(argv, d)
	script := ""
	if d.keyed {
		script = p.keyed
	}
	switch {
	case tty:
		script += jobControl
	case script == "":
		return argv
	default:
		script += `exec "$@"`
	}
	return append([]string{"/bin/sh", "-c", script, "pwos"}, argv...)
}

// doors returns the doors for an agent of this kernel. They name no agent, since the kernel recognises the processes that it
// started.
func (a *app) doors(host string) (*doors, error) {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self) // the kernel accepts no symbolic link here
	}
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	env, err := a.kernelEnv()
	if err != nil {
		return nil, err
	}
	env = env[:1] // only the runtime directory: the other paths are hidden from the agent
	return &doors{
		server: mcpEntry{command: self, args: []string{"mcp", "serve", "--no-spawn"}, env: env},
		hook:   []string{self, "hook", "run", host},
	}, nil
}

// presetHome returns the host's home directory: the one that the settings name, or else a permanent one for a name in the state
// directory, which is hidden from other agents.
func presetHome(home, name string) (string, error) {
	if home == "" {
		if strings.HasPrefix(name, ".") || strings.Contains(name, "/") {
			return "", fmt.Errorf("%q cannot be the name of a home: choose another --name, or name a directory with --home", name)
		}
		state, err := cli.StateDir()
		if err != nil {
			return "", err
		}
		home = filepath.Join(state, "homes", name)
		if err := os.MkdirAll(home, 0o700); err != nil {
			return "", fmt.Errorf("make home: %w", err)
		}
	}
	home, err := filepath.Abs(home)
	if err == nil {
		home, err = filepath.EvalSymlinks(home) // the kernel accepts no symbolic link here
	}
	if err != nil {
		return "", fmt.Errorf("find home directory: %w", err)
	}
	return home, nil
}

// makeSettings creates missing settings files, and returns the paths of all. The host can write beside them and may have
// created links there, so nothing outside home is opened.
func (p preset) makeSettings(home string) (paths []string, err error) {
	root, err := os.OpenRoot(home)
	if err != nil {
		return nil, fmt.Errorf("open home: %w", err)
	}
	defer cli.CloseInto(&err, root)
	for name, text := range p.settings {
		if err := root.Mkdir(filepath.Dir(name), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("make settings: %w", err)
		}
		file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			_, err = file.WriteString(text)
			err = errors.Join(err, file.Close())
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("make settings: %w", err)
		}
		paths = append(paths, filepath.Join(home, name))
	}
	return paths, nil
}

// claudeCommand adds the preset's options to the command line of Claude Code.
func claudeCommand(argv []string, d *doors) []string {
	settings := view.Object(nil).
		Boolean("disableAllHooks", false).
		Raw("hooks", view.Object(nil).Raw(preToolUse, hostfile.Array([][]byte{claudeHook(d.hook, d.server.env)})).Close()).
		Raw("sandbox", view.Object(nil).Boolean("enabled", false).Close()).
		Raw("permissions", view.Object(nil).Raw("allow", view.Texts([]string{"mcp__pwos"})).Close()). // the kernel checks the tools of pwos itself
		Close()
	servers := view.Object(nil).Raw("mcpServers", view.Object(nil).Raw("pwos", d.server.json()).Close()).Close()
	return slices.Concat(argv[:1], []string{"--settings=" + string(settings), "--mcp-config=" + string(servers)}, argv[1:])
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

// claudeToken sets a placeholder for the key that the kernel adds.
const claudeToken = `if [ -n "$PWOS_UPSTREAM_ANTHROPIC" ]; then
	export ANTHROPIC_AUTH_TOKEN="${ANTHROPIC_AUTH_TOKEN-held-by-the-kernel}"
fi
`

// codexProvider sets the address of the kernel's upstream as an option, since Codex reads it from no variable.
const codexProvider = `if [ -n "$PWOS_UPSTREAM_OPENAI" ]; then
	program=$1
	shift
	set -- "$program" -c "model_providers.pwos={name=\"OpenAI\",wire_api=\"responses\",base_url=\"$PWOS_UPSTREAM_OPENAI\"}" -c 'model_provider="pwos"' "$@"
fi
`
