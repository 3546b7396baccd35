package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/door"
	"github.com/promptware-os/pwos/door/hostfile"
)

// hookHost is where a host has its hooks, and how it is to run ours.
type hookHost struct {
	file   func(project bool) (string, error)
	oldest string // version that is known to refuse what its hook denies
	entry  func(command []string, env [][2]string) []byte
}

func hookHosts() map[string]hookHost {
	return map[string]hookHost{
		"claude": {file: claudeSettings, oldest: "2.1.330", entry: claudeHook},
		"codex":  {file: codexHooks, oldest: "0.169.0", entry: codexHook},
	}
}

func hookNames() []string { return []string{"claude", "codex"} }

// hookInstallFlags are the flags of `pwos hook install`.
type hookInstallFlags struct {
	hostFlags
	agent door.Agent
}

func newHookInstall(a *app) *cobra.Command {
	var f hookInstallFlags
	cmd := &cobra.Command{
		Use:   "install claude|codex",
		Short: "have a host ask before it uses a tool",
		Long: `install writes into the settings of an agent host that it is to ask the kernel before it
uses any of its own tools. What is not granted is denied, and so is everything where the
kernel cannot be reached: run "pwos hook uninstall" from another terminal to get out of
that. The host has to be in PATH, and not older than the versions in docs/doors.md.

A hook advises: the host is trusted to ask, and to obey. Only "pwos run" enforces.`,
		Example: `  pwos hook install claude --allow 'Tool:claude/Read,Tool:claude/Bash' --dry-run`,
		Args:    arguments(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)), ValidArgs: hookNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			host := hookHosts()[args[0]]
			if f.agent.Name == "" {
				f.agent.Name = args[0]
			}
			if err := host.recent(cmd.Context(), args[0]); err != nil {
				return err
			}
			entry, err := a.hookEntry(host, args[0], &f.agent)
			if err != nil {
				return err
			}
			return a.changeHost(&f.hostFlags, host.file, func(text []byte) ([]byte, error) { return setHook(text, args[0], entry) })
		},
	}
	f.add(cmd)
	addAgent(cmd, &f.agent)
	return cmd
}

func newHookUninstall(a *app) *cobra.Command {
	var f hostFlags
	cmd := &cobra.Command{
		Use:     "uninstall claude|codex",
		Short:   "have it ask no more",
		Long:    `uninstall takes out of the settings of an agent host what "pwos hook install" has written there.`,
		Example: `  pwos hook uninstall claude`,
		Args:    arguments(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)), ValidArgs: hookNames(),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.changeHost(&f, hookHosts()[args[0]].file, func(text []byte) ([]byte, error) { return setHook(text, args[0], nil) })
		},
	}
	f.add(cmd)
	return cmd
}

// hookEntry is what a host is to run, as its settings have it.
func (a *app) hookEntry(host hookHost, name string, agent *door.Agent) ([]byte, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	env, err := a.kernelEnv()
	if err != nil {
		return nil, err
	}
	command := []string{self, "hook", "run", name, "--as", agent.Name}
	if agent.Allow != nil {
		command = append(command, "--allow", strings.Join(agent.Allow, ","))
	}
	return host.entry(command, env), nil
}

// preToolUse is where both hosts have what they run before a tool.
const preToolUse = "PreToolUse"

// setHook returns a host's settings with an entry in place of ours that is there, or without it.
func setHook(text []byte, host string, entry []byte) ([]byte, error) {
	raw, err := hostfile.Member(text, "hooks", preToolUse)
	if err != nil {
		return nil, err
	}
	all, err := hostfile.Elements(raw)
	if err != nil {
		return nil, fmt.Errorf("hooks.%s in it: %w", preToolUse, err)
	}
	kept := slices.DeleteFunc(slices.Clone(all), func(one []byte) bool { return ourHook(one, host) })
	switch {
	case entry != nil:
		return hostfile.SetMember(text, hostfile.Array(append(kept, entry)), "hooks", preToolUse)
	case len(kept) == len(all):
		return text, nil
	case len(kept) == 0:
		return hostfile.RemoveMember(text, "hooks", preToolUse)
	}
	return hostfile.SetMember(text, hostfile.Array(kept), "hooks", preToolUse)
}

// ourHook reports whether an element of a host's hooks is one that runs "pwos hook run".
func ourHook(one []byte, host string) bool {
	members, _ := objectOf(one)
	hooks, _ := arrayOf(members["hooks"])
	for _, h := range hooks {
		hook, _ := objectOf(h)
		command, _ := textOf(hook["command"])
		args, _ := valueOf[[]string](hook["args"])
		if strings.Contains(strings.Join(append([]string{command}, args...), " "), " hook run "+host+" ") {
			return true
		}
	}
	return false
}

// everyTool is the element of a host's hooks that runs a hook before every tool.
func everyTool(hook []byte) []byte {
	return object(nil).text("matcher", "*").raw("hooks", hostfile.Array([][]byte{hook})).close()
}

// claudeHook has Claude Code start the program itself, without a shell, and block the tool where it cannot, or where the program fails or takes too
// long: without onFailure it would go on.
func claudeHook(command []string, env [][2]string) []byte {
	return everyTool(object(nil).text("type", "command").text("command", "/usr/bin/env").raw("args", texts(append(assignments(env), command...))).
		text("onFailure", "block").integer("timeout", int64(hostTime.Seconds())).close())
}

// codexHook has Codex start the program through a shell, which denies where the program is not there or fails: Codex by itself would go on.
func codexHook(command []string, env [][2]string) []byte {
	return everyTool(object(nil).text("type", "command").text("command", codexLine(command, env)).integer("timeout", int64(hostTime.Seconds())).close())
}

func codexLine(command []string, env [][2]string) string {
	var words []string
	for _, word := range append(assignments(env), command...) {
		words = append(words, quoted(word))
	}
	return "/usr/bin/env " + strings.Join(words, " ") + " || { echo 'pwos: the tool was not allowed' >&2; exit 2; }"
}

func assignments(env [][2]string) (all []string) {
	for _, one := range env {
		all = append(all, one[0]+"="+one[1])
	}
	return all
}

var version3 = regexp.MustCompile(`\d+\.\d+\.\d+`)

// recent returns an error where the host is not there, or older than what its hooks were tried with.
func (h hookHost) recent(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, usualTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, "--version").Output()
	if err != nil {
		return fmt.Errorf("ask %s for its version: %w: install it, or put it in PATH", name, err)
	}
	is := version3.FindString(string(out))
	if is == "" {
		return fmt.Errorf("%s --version says no version: %.100q", name, out)
	}
	if older(is, h.oldest) {
		return fmt.Errorf("%s %s may go on where its hook denies or fails: %s or newer is needed", name, is, h.oldest)
	}
	return nil
}

// older reports whether a version comes before another; both are three numbers.
func older(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range x {
		m, errM := strconv.Atoi(x[i])
		n, errN := strconv.Atoi(y[i])
		if errors.Join(errM, errN) != nil || m != n {
			return m < n
		}
	}
	return false
}

func claudeSettings(project bool) (string, error) {
	if project {
		return filepath.Abs(filepath.Join(".claude", "settings.json"))
	}
	dir, err := inHome("CLAUDE_CONFIG_DIR", ".claude")
	return filepath.Join(dir, "settings.json"), err
}

func codexHooks(project bool) (string, error) {
	if project {
		return filepath.Abs(filepath.Join(".codex", "hooks.json"))
	}
	dir, err := inHome("CODEX_HOME", ".codex")
	return filepath.Join(dir, "hooks.json"), err
}
