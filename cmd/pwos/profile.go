package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/internal/replace"
	"github.com/promptware-os/pwos/policy"
	"github.com/promptware-os/pwos/profile"
	"github.com/promptware-os/pwos/view"
)

func newProfile(a *app) *cobra.Command {
	return cli.Group("profile", "show and change the settings that agents are run with",
		`A profile is a file of settings, which "pwos run --profile NAME" uses; an agent host has coder
without one. Included are reader, worker and coder. Yours are in profiles/*.toml beside the
configuration, and one with the name of an included one replaces it. See docs/profiles.md.`,
		`  pwos profile show
  pwos profile edit coder`,
		newProfileShow(a), newProfileEdit(a), newProfileLs(a))
}

// profileArg returns the profile that args name, or the default one, and the directory of the user's profiles.
func profileArg(args []string) (name, dir string) {
	if len(args) > 0 {
		return args[0], policy.Profiles(client.ConfigFile())
	}
	return defaultProfile, policy.Profiles(client.ConfigFile())
}

func newProfileShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show [NAME]", Short: "print a profile", Example: "  pwos profile show\n  pwos profile show worker",
		Long: `show prints the file of a profile; without NAME that of coder, the one that an agent host has by
default. With grant.host, what the preset of the host declares comes on top. The rules of coder
follow as comments.`,
		Args: cli.Arguments(cobra.MaximumNArgs(1)), ValidArgsFunction: completeProfile,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, dir := profileArg(args)
			_, text, err := profile.Text(dir, name)
			if err != nil {
				return cli.Usage(cmd, err)
			}
			if rules := policy.Shipped(name); rules != nil && !exists(filepath.Join(dir, name+".cedar")) {
				text = append(text, "\n# And these rules about what it executes:\n#\n"...)
				for line := range bytes.Lines(rules) {
					text = append(text, bytes.TrimRight(append([]byte("# "), line...), " \n")...)
					text = append(text, '\n')
				}
			}
			return a.Print(string(text))
		},
	}
}

func newProfileEdit(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "edit [NAME]", Short: "change a profile in your editor", Example: "  pwos profile edit\n  EDITOR=nano pwos profile edit mine",
		Long: `edit opens the file of a profile in $VISUAL or $EDITOR, else vi; without NAME that of coder. Of an
included profile it edits a copy, which is then used instead; a new one begins as a copy of coder.
It is kept only if it is valid.`,
		Args: cli.Arguments(cobra.MaximumNArgs(1)), ValidArgsFunction: completeProfile,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, dir := profileArg(args)
			if !profile.IsName(name) {
				return cli.Usage(cmd, fmt.Errorf("%q cannot be the name of a profile: use letters and digits, such as mine", name))
			}
			return a.editProfile(cmd, dir, name)
		},
	}
}

// editProfile has the user edit a profile, in a file beside it until it is valid.
func (a *app) editProfile(cmd *cobra.Command, dir, name string) (err error) {
	_, text, err := profile.Text(dir, name)
	if err != nil {
		if _, text, err = profile.Text(dir, defaultProfile); err != nil {
			return err
		}
	}
	scratch, err := os.MkdirTemp("", "pwos-profile-")
	if err != nil {
		return fmt.Errorf("edit profile: %w", err)
	}
	file := filepath.Join(scratch, name+".toml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return errors.Join(fmt.Errorf("edit profile: %w", err), os.RemoveAll(scratch))
	}
	changed, err := a.edited(cmd, file, text)
	if err != nil {
		a.Say("what you have written is in %s", view.Escaped(file))
		return err
	}
	if err := os.RemoveAll(scratch); err != nil {
		return fmt.Errorf("edit profile: %w", err)
	}
	if changed == nil {
		a.Say("nothing has changed")
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	at := filepath.Join(dir, name+".toml")
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(at); err == nil {
		mode = info.Mode().Perm()
	}
	if err := replace.File(at, changed, mode); err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	a.Say("written to %s: agents have it from their next start", view.Escaped(at))
	return nil
}

// edited runs the user's editor, and returns a file's valid text; nil: it is as it was.
func (a *app) edited(cmd *cobra.Command, file string, was []byte) ([]byte, error) {
	editor := "vi"
	for _, name := range []string{"EDITOR", "VISUAL"} {
		if given := os.Getenv(name); given != "" {
			editor = given
		}
	}
	run := exec.CommandContext(cmd.Context(), "/bin/sh", "-c", editor+` "$1"`, "pwos", file) // it may have arguments, as with git
	run.Stdin, run.Stdout, run.Stderr = a.Stdin, a.Stderr, a.Stderr
	if err := run.Run(); err != nil {
		return nil, fmt.Errorf("run the editor %s: %w", view.Escaped(editor), err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("edit profile: %w", err)
	}
	if string(text) == string(was) {
		return nil, nil
	}
	if _, err := profile.Parse(filepath.Base(file), text); err != nil {
		return nil, cli.Usage(cmd, err)
	}
	return text, nil
}

func newProfileLs(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "list the profiles", Example: "  pwos profile ls", Args: cli.Arguments(cobra.NoArgs),
		Long: "ls lists the profiles, and where each is.",
		RunE: func(*cobra.Command, []string) error {
			dir := policy.Profiles(client.ConfigFile())
			list := a.Listing("profile", "file")
			for _, name := range profile.Names(dir) {
				at, _, err := profile.Text(dir, name)
				if err != nil {
					return err
				}
				if !filepath.IsAbs(at) {
					at = ""
				}
				if err := list.Add(view.Object(nil).Text("profile", name).Text("file", at).Close(), view.Escaped(name), view.Escaped(at)); err != nil {
					return err
				}
			}
			return list.End()
		},
	}
}
