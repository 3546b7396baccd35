package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/policy"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

// learnFlag is the value of --learn, or of --learn=NAME, which writes the result as a profile with that name.
type learnFlag struct {
	on   bool
	name string
}

func (f *learnFlag) String() string { return f.name }

func (f *learnFlag) Type() string { return "NAME" }

// Set implements pflag.Value.
func (f *learnFlag) Set(text string) error {
	f.on, f.name = true, text
	if text == "true" { // --learn without a name
		f.name = ""
	} else if !config.IsProfileName(text) {
		return fmt.Errorf("%q cannot be the name of a profile: use letters and digits, such as mine", text)
	}
	return nil
}

// profilePaths returns the files of a learned profile: its grant and its rules.
func profilePaths(name string) (grant, rules string) {
	at := filepath.Join(policy.Profiles(client.ConfigFile()), name)
	return at + ".toml", at + ".cedar"
}

// free returns an error if a file of the profile exists.
func free(name string) error {
	grant, rules := profilePaths(name)
	for _, path := range []string{grant, rules} {
		if _, err := os.Lstat(path); err == nil {
			return fmt.Errorf("--learn=%s would overwrite %s: remove it, or choose another name", name, path)
		}
	}
	return nil
}

// writeProfile writes a learned profile: a grant, the program's sandbox, and rules.
func (j *job) writeProfile(l *view.Lesson, peaks map[string]float64, servers view.Servers) error {
	grant, rules := profilePaths(j.learn.name)
	if err := os.MkdirAll(filepath.Dir(grant), 0o700); err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	if err := writeNew(rules, l.Policy.Rules(j.learn.name)); err != nil {
		return err
	}
	return writeNew(grant, []byte(j.profileText(filepath.Base(rules), l.Allow(), peaks, servers)))
}

// profileText returns the TOML text of a learned profile.
func (j *job) profileText(rules string, allow []string, quotas map[string]float64, servers view.Servers) string {
	var b strings.Builder
	list := func(name string, all []string) {
		if len(all) > 0 {
			fmt.Fprintf(&b, "%s = %s\n", name, view.Texts(all))
		}
	}
	text := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s = %s\n", name, schema.AppendString(nil, value))
		}
	}
	b.WriteString("# What pwos run --learn=" + j.learn.name + " has learned.\n")
	text("policy", rules)
	b.WriteString("\n[grant]\n")
	list("allow", allow)
	list("hosts", servers.Hosts)
	if servers.Plain {
		b.WriteString("http_plain = true\n")
	}
	if servers.Open {
		b.WriteString("http_open = true\n")
	}
	if len(quotas) > 0 {
		b.WriteString("\n[grant.quotas]\n")
		for _, resource := range slices.Sorted(maps.Keys(quotas)) {
			fmt.Fprintf(&b, "%s = %s\n", schema.AppendString(nil, resource), view.Units(quotas[resource]))
		}
	}
	if s := j.sandbox; s != nil {
		b.WriteString("\n[sandbox]\n")
		for _, one := range []struct {
			name  string
			value *string
		}{{"level", s.Level}, {"net", s.Net}} {
			if one.value != nil {
				text(one.name, *one.value)
			}
		}
		list("read", s.Read)
		list("write", s.Write)
		list("hide", s.Hide)
	}
	return b.String()
}

// writeNew writes and syncs a file, which must not exist.
func writeNew(path string, text []byte) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	return nil
}

// flag is the name of a flag, with its values.
type flag struct {
	name   string
	values []string
}

// profileFlags returns the flags of pwos run that a profile sets. A relative path is below dir, or below home if it begins with ~/.
func profileFlags(p *config.Profile, dir, home string) []flag {
	paths := func(list []string) (all []string) {
		for _, path := range list {
			if rest, ok := strings.CutPrefix(path, "~/"); ok {
				path = filepath.Join(home, rest)
			} else if !filepath.IsAbs(path) {
				path = filepath.Join(dir, path)
			}
			all = append(all, path)
		}
		return all
	}
	text := func(value string) []string {
		if value == "" {
			return nil
		}
		return []string{value}
	}
	yes := func(value bool) []string {
		if !value {
			return nil
		}
		return []string{"true"}
	}
	all := []flag{
		{"allow", p.Grant.Allow},
		{"host", p.Grant.Hosts},
		{"http-plain", yes(p.Grant.HTTPPlain)},
		{"http-open", yes(p.Grant.HTTPOpen)},
		{"ttl", text(p.Grant.TTL)},
		{"sandbox", text(p.Sandbox.Level)},
		{"net", text(p.Sandbox.Net)},
		{"read", paths(p.Sandbox.Read)},
		{"write", paths(p.Sandbox.Write)},
		{"hide", paths(p.Sandbox.Hide)},
		{"budget", budgetOfProfile(p)},
	}
	var quotas, limits []string
	for _, resource := range slices.Sorted(maps.Keys(p.Grant.Quotas)) {
		quotas = append(quotas, resource+"="+view.Units(p.Grant.Quotas[resource]))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Limits)) {
		limits = append(limits, name+"="+strconv.FormatInt(p.Limits[name], 10))
	}
	return append(all, flag{"quota", quotas}, flag{"limit", limits})
}

// budgetOfProfile returns the values of --budget; nil if the profile has no budget.
func budgetOfProfile(p *config.Profile) (parts []string) {
	for _, one := range []struct {
		name  string
		value *int64
	}{{"calls", p.Budget.Calls}, {"fetches", p.Budget.Fetches}, {"tokens", p.Budget.Tokens}, {"wall_seconds", p.Budget.WallSeconds}} {
		if one.value != nil {
			parts = append(parts, one.name+"="+strconv.FormatInt(*one.value, 10))
		}
	}
	if p.Budget.USD != nil {
		parts = append(parts, "usd="+strconv.FormatFloat(*p.Budget.USD, 'f', -1, 64))
	}
	return parts
}

// applyProfile sets the flags of --profile. Flags of the command line take precedence, and it prints which.
func (a *app) applyProfile(cmd *cobra.Command, f *runFlags) (*config.Profile, error) {
	if !cmd.Flags().Changed("profile") {
		return nil, nil
	}
	p, err := config.ReadProfile(policy.Profiles(client.ConfigFile()), f.profile)
	if err != nil {
		return nil, cli.Usage(cmd, err)
	}
	dir := f.dir
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("find working directory: %w", err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, fmt.Errorf("find home directory: %w", err)
	}
	if placed(p) && f.ownDir {
		return nil, cli.Usage(cmd, fmt.Errorf("the profile %s is for an existing directory: leave out --own-dir", p.Name))
	}
	for _, one := range profileFlags(p, dir, home) {
		switch given := cmd.Flags().Lookup(one.name); {
		case len(one.values) == 0:
		case given.Changed:
			a.Say("--%s overrides the profile %s", one.name, p.Name)
		case f.learn.on && (one.name == "quota" || one.name == "ttl"): // --learn grants everything
		default:
			for _, value := range one.values {
				if err := setFlag(given, value); err != nil {
					return nil, cli.Usage(cmd, fmt.Errorf("profile %s: %w", p.Name, err))
				}
			}
			given.Changed = true
		}
	}
	return p, nil
}

// placed reports whether the profile has paths that are relative to the working directory.
func placed(p *config.Profile) bool {
	return p != nil && slices.ContainsFunc(slices.Concat(p.Sandbox.Read, p.Sandbox.Write, p.Sandbox.Hide), func(path string) bool {
		return !filepath.IsAbs(path) && !strings.HasPrefix(path, "~/")
	})
}

// under records the profile in the job, and in the intent of its process.
func (j *job) under(p *config.Profile) {
	if p != nil {
		intent := policy.ProfileIntent + p.Name
		j.profile, j.input.Intent = p, &intent
	}
}

// setFlag sets a flag; to a list it adds the value unsplit.
func setFlag(f *pflag.Flag, value string) error {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		if err := list.Append(value); err != nil {
			return fmt.Errorf("--%s: %w", f.Name, err)
		}
		return nil
	}
	if err := f.Value.Set(value); err != nil {
		return fmt.Errorf("--%s %s: %w", f.Name, value, err)
	}
	return nil
}

// ruled returns an error if the kernel has not loaded the profile's rules in their current form.
func ruled(ctx context.Context, c *client.Client, p *config.Profile) error {
	if p == nil || p.Policy == "" {
		return nil
	}
	file := client.ConfigFile()
	name := filepath.Base(policy.Profiles(file)) + "/" + p.Policy
	files, err := policy.Read(file)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(files, func(f policy.File) bool { return f.Name == name }) {
		return fault.PolicyInvalid.New("the profile %s has its rules in %s, which does not exist", p.Name, name).WithFix("write that file, or leave out policy")
	}
	set, problems := policy.Compile(files)
	for _, one := range problems {
		if !one.Warning {
			return fault.PolicyInvalid.New("%s", one).WithFix(`"pwos policy check" lists all faults`)
		}
	}
	shown, err := cli.InvokeAs(ctx, c, schema.PolicyShow, &schema.PolicyShowInput{})
	switch {
	case err != nil:
		return err
	case set != nil && shown.Hash != set.Hash:
		return fault.PolicyInvalid.New("the kernel has not loaded the rules of %s as they are now", name).WithFix(`load them with "pwos policy reload"`)
	}
	return nil
}

func completeProfile(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return config.Profiles(policy.Profiles(client.ConfigFile())), cobra.ShellCompDirectiveNoFileComp
}
