package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/door"
	"github.com/promptware-os/pwos/door/hostfile"
	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/internal/front"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

func newHook(a *app) *cobra.Command {
	return cli.Group("hook", "make an agent host ask the kernel before it uses a tool",
		`hook makes an agent host ask the kernel before it uses one of its own tools, such as Bash
or Edit. The kernel checks whether the host's process was granted Tool:HOST/TOOL, and
records each question. The host is trusted to ask and to obey: only "pwos run" enforces.`,
		`  pwos hook install claude --allow 'Tool:claude/Read,Tool:claude/Bash'
  pwos cap grant 7 --add Tool:claude/Edit`,
		newHookInstall(a), newHookUninstall(a), newHookStatus(a), newHookRun(a))
}

// hookInstallFlags are the flags of `pwos hook install`.
type hookInstallFlags struct {
	hostFlags
	agent door.Agent
}

func newHookInstall(a *app) *cobra.Command {
	var f hookInstallFlags
	cmd := &cobra.Command{
		Use:   "install " + strings.Join(hookNames(), "|"),
		Short: "make a host ask before it uses a tool",
		Long: `install changes the settings of an agent host, so that it asks the kernel before it uses
any of its own tools. Tools that are not granted are denied, and so are all tools while
the kernel cannot be reached: then run "pwos hook uninstall" from another terminal. The
host must be in PATH, and must not be older than the versions in docs/doors.md.

The host is trusted to ask and to obey. Only "pwos run" enforces.

Exit status: 1 it is installed, and a setting of the host switches it off.`,
		Example: `  pwos hook install claude --allow 'Tool:claude/Read,Tool:claude/Bash' --dry-run`,
		Args:    cli.Arguments(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)), ValidArgs: hookNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			host := hostNamed(args[0]).hook
			if f.agent.Name == "" {
				f.agent.Name = args[0]
			}
			if err := recent(cmd.Context(), args[0]); err != nil {
				return err
			}
			entry, err := a.hookEntry(args[0], &f.agent)
			if err != nil {
				return err
			}
			err = a.changeHost(&f.hostFlags, host.file, func(text []byte) ([]byte, error) { return setHooks(text, args[0], entry) })
			if err != nil || f.dryRun {
				return err
			}
			return a.tellHook(cmd.Context(), args[0])
		},
	}
	f.add(cmd)
	addAgent(cmd, &f.agent)
	return cmd
}

func newHookUninstall(a *app) *cobra.Command {
	var f hostFlags
	cmd := &cobra.Command{
		Use:     "uninstall " + strings.Join(hookNames(), "|"),
		Short:   "make it stop asking",
		Long:    `uninstall removes what "pwos hook install" wrote from the settings of an agent host.`,
		Example: `  pwos hook uninstall claude`,
		Args:    cli.Arguments(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)), ValidArgs: hookNames(),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.changeHost(&f, hostNamed(args[0]).hook.file, func(text []byte) ([]byte, error) {
				return setHooks(text, args[0], func(string) []byte { return nil })
			})
		},
	}
	f.add(cmd)
	return cmd
}

// hookEntry returns a function that returns the entry of pwos for an event in a host's settings.
func (a *app) hookEntry(name string, agent *door.Agent) (func(event string) []byte, error) {
	self, err := hookProgram()
	if err != nil {
		return nil, err
	}
	env, err := a.kernelEnv()
	if err != nil {
		return nil, err
	}
	command := []string{self, "hook", "run", name, "--as", agent.Name}
	if agent.Allow != nil {
		command = append(command, "--allow", quote.List(agent.Allow))
	}
	return func(event string) []byte { return []byte(preset.Named(name).Entry(event, command, env)) }, nil
}

// hookProgram returns the program that hosts start as a hook.
func hookProgram() (string, error) {
	if path := front.Beside(); path != "" {
		return path, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find own program: %w", err)
	}
	return self, nil
}

// tellHook says why an installed hook is not in force. That Codex has to trust a new hook first is no error.
func (a *app) tellHook(ctx context.Context, name string) error {
	s, err := hostNamed(name).hook.state(ctx, name)
	switch {
	case err != nil:
		return err
	case s.inForce() && s.untold == "":
		return nil
	case s.inForce():
		a.Say("the hook is in force, and does not end steps yet: %s", s.untold)
		return nil
	case s.trusted:
		return fmt.Errorf("the hook is installed, and not in force: %s", s.off)
	}
	a.Say("the hook is installed, and not in force yet: %s", s.off)
	return nil
}

// setHooks returns a host's settings with the hooks of pwos replaced by what entry returns for each event; nil removes one.
func setHooks(text []byte, host string, entry func(event string) []byte) (_ []byte, err error) {
	for _, event := range preset.Named(host).Events {
		if text, err = setHook(text, host, event, entry(event)); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// setHook returns a host's settings with the hook of pwos for an event replaced; a nil entry removes it. Other hooks stay, also those in
// one group with it.
func setHook(text []byte, host, event string, entry []byte) ([]byte, error) {
	var groups, ours int // all, and those that have a hook of pwos
	same := false
	edited, err := hostfile.EditElements(text, func(group []byte) ([]byte, error) {
		groups++
		left, err := hostfile.EditElements(group, func(hook []byte) ([]byte, error) {
			if ourHook(hook, host) {
				return nil, nil
			}
			return hook, nil
		}, "hooks")
		if err != nil || bytes.Equal(left, group) {
			return group, err
		}
		ours++
		same = entry != nil && hostfile.Same(group, entry)
		if hooks, err := hostfile.Member(left, "hooks"); err != nil || string(hooks) != "[]" {
			return left, err
		}
		groups--
		return nil, nil
	}, "hooks", event)
	switch {
	case err != nil:
		return nil, err
	case entry != nil && ours == 1 && same:
		return text, nil
	case entry != nil:
		return hostfile.AppendElement(edited, entry, "hooks", event)
	case ours > 0 && groups == 0:
		return hostfile.RemoveMember(edited, "hooks", event)
	}
	return edited, nil
}

// ourHook reports whether a hook of a host's settings runs "pwos hook run" for the host.
func ourHook(hook []byte, host string) bool {
	var words []string
	if raw, err := hostfile.Member(hook, "command"); err == nil && raw != nil {
		command, _ := view.Text(raw)
		words = append(words, command)
	}
	if raw, err := hostfile.Member(hook, "args"); err == nil && raw != nil {
		args, _ := view.As[[]string](raw)
		words = append(words, args...)
	}
	return strings.Contains(strings.Join(words, " "), " hook run "+host+" ")
}

var version3 = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\d+\.\d+\.\d+`) })

// recent returns an error if a host is not installed, or is older than the version that its hooks were tested with.
func recent(ctx context.Context, name string) error {
	is, err := versionOf(ctx, name)
	if err != nil {
		return err
	}
	oldest := preset.Named(name).Oldest
	if older(is, oldest) {
		return fmt.Errorf("%s %s may use the tool although its hook denies or fails: install %s or newer", name, is, oldest)
	}
	return nil
}

// versionOf returns the version that a host says it has.
func versionOf(ctx context.Context, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, cli.UsualTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w: install it, or put it in PATH", name, err)
	}
	is := version3().FindString(string(out))
	if is == "" {
		return "", fmt.Errorf("%s --version printed no version: %.100q", name, out)
	}
	return is, nil
}

// older reports whether version a precedes version b. Each has three numbers.
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
