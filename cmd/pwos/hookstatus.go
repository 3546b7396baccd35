package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/door/hostfile"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

func newHookStatus(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "show which hosts ask, and what keeps one from asking",
		Long: `status tells for each host whether the hook is installed, whether the host trusts it, and
whether it is in force, or what switches it off: a setting of the user, of the project in
this directory or of the administrator, or an old version. It reads the host's files and
asks the host for its version; options of the host's command line are not known to it.

Exit status: 0 each installed hook is in force, 1 one is not.`,
		Example: `  pwos hook status`,
		Args:    cli.Arguments(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.hookStatus(cmd.Context()) },
	}
}

// hookState describes the hook of a host.
type hookState struct {
	host, file         string // file has the hook, or would
	installed, trusted bool
	off                string // what switches the hook off, or keeps the host from trusting it; "": nothing known
}

func (s *hookState) inForce() bool { return s.installed && s.trusted && s.off == "" }

func (a *app) hookStatus(ctx context.Context) error {
	t := new(view.Table)
	t.Header("host", "installed", "trusted", "in force", "why not")
	lacking := false
	for _, name := range hookNames() {
		s, err := hookHosts()[name].state(ctx, name)
		if err != nil {
			return err
		}
		lacking = lacking || s.installed && !s.inForce()
		t.Row(s.host, yesNo(s.installed), yesNo(s.trusted), yesNo(s.inForce()), view.Escaped(s.off))
		if a.WantsJSON() {
			if err := a.PrintLine(view.Object(nil).Text("host", s.host).Text("file", s.file).Boolean("installed", s.installed).
				Boolean("trusted", s.trusted).Boolean("in_force", s.inForce()).Text("off", s.off).Close()); err != nil {
				return err
			}
		}
	}
	if !a.WantsJSON() {
		if err := a.Print(t.Text()); err != nil {
			return err
		}
	}
	if err := a.tellReplaced("claude"); err != nil {
		return err
	}
	if lacking {
		return cli.ExitStatus(fault.ExitError) // the table has the reason
	}
	return nil
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// state returns the state of the hook in the user's settings or, if it is only there, in the project's.
func (h hookHost) state(ctx context.Context, name string) (*hookState, error) {
	s := &hookState{host: name}
	for _, project := range []bool{true, false} {
		path, err := h.file(project)
		if err != nil {
			return nil, err
		}
		text, err := settings(path)
		if err != nil {
			return nil, err
		}
		at, err := findHook(text, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if s.file = path; at == nil {
			continue
		}
		s.installed = true
		if s.trusted, s.off, err = h.judge(path, at); err != nil || s.inForce() {
			break
		}
	}
	if s.installed && s.off == "" {
		if err := h.recent(ctx, name); err != nil {
			s.off = err.Error()
		}
	}
	return s, nil
}

// settings returns the text of a file; "" if there is none.
func settings(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// foundHook is the hook of pwos in a host's settings.
type foundHook struct {
	group, index int
	matcher      string
	hook         map[string]schema.Value
}

// findHook returns the hook of pwos for a host, nil if there is none.
func findHook(text []byte, host string) (*foundHook, error) {
	raw, err := hostfile.Member(text, "hooks", preToolUse)
	if err != nil || raw == nil {
		return nil, err
	}
	groups, err := hostfile.Elements(raw)
	if err != nil {
		return nil, fmt.Errorf("hooks.%s in it: %w", preToolUse, err)
	}
	for i, group := range groups {
		members, _ := view.Members(group)
		hooks, _ := view.Elements(members["hooks"])
		for j, one := range hooks {
			if ourHook(one, host) {
				found := &foundHook{group: i, index: j}
				found.hook, _ = view.Members(one)
				found.matcher, _ = view.Text(members["matcher"])
				return found, nil
			}
		}
	}
	return nil, nil
}

// managedClaude is the file of an administrator's settings, which take precedence over all others.
const managedClaude = "/etc/claude-code/managed-settings.json"

// judgeClaude says what switches hooks off in the settings that apply in this directory. Claude Code does not ask its user about a
// hook.
func judgeClaude(path string, _ *foundHook) (trusted bool, off string, err error) {
	user, err := hookHosts()["claude"].file(false)
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

// judgeCodex says whether Codex trusts the hook, whose hash it keeps once its user has accepted it, and what switches it off.
func judgeCodex(path string, at *foundHook) (trusted bool, off string, err error) {
	config, err := mcpHosts()["codex"].file(false)
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

// tellReplaced says that the project in this directory gives its own server the name of that of pwos.
func (a *app) tellReplaced(host string) error {
	h, ok := mcpHosts()[host]
	if !ok || h.toml {
		return nil
	}
	path, err := h.file(true)
	if err != nil {
		return err
	}
	text, err := settings(path)
	if err != nil {
		return err
	}
	if h.ours(text, schema.OwnServer) != nil {
		a.Say("warning: the server pwos of %s replaces the installed one in this directory: its tools pass for those of pwos", path)
	}
	return nil
}
