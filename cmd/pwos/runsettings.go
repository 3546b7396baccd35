package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/profile"
)

// settingFlag is the value of a flag that sets settings of a profile. It is set in the order of the command line.
type settingFlag struct {
	set   func(text string) error
	yesNo bool
}

func (f settingFlag) Set(text string) error {
	if err := f.set(text); err != nil {
		return cli.Told{Err: err}
	}
	return nil
}

func (settingFlag) String() string { return "" }

func (f settingFlag) Type() string {
	if f.yesNo {
		return "bool"
	}
	return "string"
}

// addSettings adds the named flags of profile.Flags.
func addSettings(flags *pflag.FlagSet, line *profile.Line, names ...string) {
	for _, f := range profile.Flags() {
		if slices.Contains(names, f.Name) {
			addSetting(flags, line, f)
		}
	}
}

// addAllSettings adds all flags of profile.Flags, and --set. The help shows some of them.
func addAllSettings(flags *pflag.FlagSet, line *profile.Line) {
	flags.Var(settingFlag{set: line.Set}, "set", `any setting of a profile, as KEY=VALUE: "pwos help settings" lists them; may be repeated`)
	for _, f := range profile.Flags() {
		addSetting(flags, line, f).Hidden = !f.Shown
	}
}

func addSetting(flags *pflag.FlagSet, line *profile.Line, f profile.Flag) *pflag.Flag {
	flag := flags.VarPF(settingFlag{func(text string) error { return line.Flag(f.Name, text) }, f.Yes}, f.Name, "", f.About)
	if f.Yes {
		flag.NoOptDefVal = "true"
	}
	return flag
}

func completeSetting(*cobra.Command, []string, string) (keys []cobra.Completion, how cobra.ShellCompDirective) {
	for _, s := range profile.Settings() {
		keys = append(keys, cobra.CompletionWithDesc(s.Key+"=", s.About))
	}
	return keys, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// newSettings returns the help topic that lists all settings.
func newSettings() *cobra.Command {
	var b strings.Builder
	b.WriteString(`A setting of an agent is a key of a profile's file, profiles/NAME.toml beside the configuration, which
"pwos run --profile NAME" uses, or of "pwos run --set KEY=VALUE". --set and flags of pwos run override the
profile, in their order; the values of a list add up. A path begins with /, with ~/, or is below the working
directory of the agent. docs/profiles.md has examples, and the flags of pwos run that set the same.
`)
	for _, s := range profile.Settings() {
		fmt.Fprintf(&b, "\n  %s: %s\n      %s\n", s.Key, s.Takes, s.About)
	}
	return &cobra.Command{Use: "settings", Short: "the settings of an agent: keys of profiles, and of pwos run --set", Long: b.String()}
}
