package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/door/hook"
	"github.com/promptware-os/pwos/door/hostfile"
	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

func newHookStatus(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "show which hosts ask, and what keeps one from asking",
		Long: `status tells for each host whether the hook is installed, whether the host trusts it, and
whether it is in force, or what switches it off: a setting of the user, of the project in
this directory or of the administrator, or an old version. The column steps is about the
hooks that tell when a tool has ended. It reads the host's files and asks the host for its
version; options of the host's command line are not known to it.

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
	untold             string // the same of the hooks that end steps
}

func (s *hookState) inForce() bool { return s.installed && s.trusted && s.off == "" }

func (a *app) hookStatus(ctx context.Context) error {
	t := new(view.Table)
	t.Header("host", "installed", "trusted", "in force", "steps", "why not")
	lacking := false
	for _, name := range hookNames() {
		s, err := hostNamed(name).hook.state(ctx, name)
		if err != nil {
			return err
		}
		lacking = lacking || s.installed && !s.inForce()
		told := s.inForce() && s.untold == ""
		t.Row(s.host, yesNo(s.installed), yesNo(s.trusted), yesNo(s.inForce()), yesNo(told), view.Escaped(cmp.Or(s.off, s.untold)))
		if a.WantsJSON() {
			if err := a.PrintLine(view.Object(nil).Text("host", s.host).Text("file", s.file).Boolean("installed", s.installed).
				Boolean("trusted", s.trusted).Boolean("in_force", s.inForce()).Boolean("steps", told).Text("off", cmp.Or(s.off, s.untold)).Close()); err != nil {
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
func (h *hookHost) state(ctx context.Context, name string) (*hookState, error) {
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
		at, err := findHook(text, name, hook.PreToolUse)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if s.file = path; at == nil {
			continue
		}
		s.installed = true
		if s.trusted, s.off, err = h.judge(path, at); err != nil {
			return nil, err
		}
		if s.untold, err = h.untold(path, text, name); err != nil {
			return nil, err
		}
		if s.inForce() {
			break
		}
	}
	if s.installed && s.off == "" {
		if err := recent(ctx, name); err != nil {
			s.off = err.Error()
		}
	}
	return s, nil
}

// untold returns why a host's settings do not end steps; "" if they do.
func (h *hookHost) untold(path string, text []byte, name string) (string, error) {
	for _, event := range preset.Named(name).Events[1:] {
		at, err := findHook(text, name, event)
		switch {
		case err != nil:
			return "", fmt.Errorf("%s: %w", path, err)
		case at == nil:
			return fmt.Sprintf("there is none for %s: run %s again", event, quote.Command("pwos", "hook", "install", name)), nil
		}
		if _, off, err := h.judge(path, at); err != nil || off != "" {
			return event + ": " + off, err
		}
	}
	return "", nil
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
	event        string
	group, index int
	matcher      string
	hook         map[string]schema.Value
}

// findHook returns the hook of pwos for an event of a host, nil if there is none.
func findHook(text []byte, host, event string) (*foundHook, error) {
	raw, err := hostfile.Member(text, "hooks", event)
	if err != nil || raw == nil {
		return nil, err
	}
	groups, err := hostfile.Elements(raw)
	if err != nil {
		return nil, fmt.Errorf("hooks.%s in it: %w", event, err)
	}
	for i, group := range groups {
		members, _ := view.Members(group)
		hooks, _ := view.Elements(members["hooks"])
		for j, one := range hooks {
			if ourHook(one, host) {
				found := &foundHook{event: event, group: i, index: j}
				found.hook, _ = view.Members(one)
				found.matcher, _ = view.Text(members["matcher"])
				return found, nil
			}
		}
	}
	return nil, nil
}

// tellReplaced says that the project in this directory gives its own server the name of that of pwos.
func (a *app) tellReplaced(host string) error {
	h := hostNamed(host).mcp
	if h.toml {
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
