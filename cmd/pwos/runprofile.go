package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/policy"
	"github.com/promptware-os/pwos/profile"
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
	} else if !profile.IsName(text) {
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
	p := profile.Profile{
		Policy: filepath.Base(rules), Quotas: peaks, Allow: l.Allow(),
		Hosts: servers.Hosts, HTTPPlain: servers.Plain, HTTPOpen: servers.Open,
	}
	if s := j.sandbox; s != nil {
		p.Level, p.Net, p.AllowGaps = view.Deref(s.Level), view.Deref(s.Net), view.Deref(s.AllowGaps)
		p.Read, p.Write, p.Hide = s.Read, s.Write, s.Hide
	}
	text, err := p.TOML()
	if err != nil {
		return err
	}
	if err := writeNew(rules, l.Policy.Rules(j.learn.name)); err != nil {
		return err
	}
	return writeNew(grant, append([]byte("# What pwos run --learn="+j.learn.name+" has learned.\n"), text...))
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

// defaultProfile is the one that an agent host has without --profile and --allow.
const defaultProfile = "coder"

// profileOf returns the settings of the command line for a program, and of its profile. It prints which flags override the profile. Its
// errors are usage errors.
func (a *app) profileOf(cmd *cobra.Command, f *runFlags, args []string) (p *profile.Profile, err error) {
	given := f.line.Profile()
	if f.learn.on && (given.Quotas != nil || given.TTL != 0) {
		return nil, errors.New("--learn grants everything: leave out --quota and --ttl; --allow and --host name the grant to compare with")
	}
	p = new(profile.Profile)
	dir := policy.Profiles(client.ConfigFile())
	host, err := hostOf(given.Preset, args)
	switch {
	case err != nil:
	case cmd.Flags().Changed("profile"):
		p, err = profile.Read(dir, f.profile)
	case host != nil && given.Allow == nil && !f.learn.on:
		p, err = a.defaultsOf(cmd.Context(), dir, given.Dir)
	}
	if err != nil {
		return nil, err
	}
	for _, flag := range f.line.Over(p) {
		a.note("%s overrides the profile %s", flag, p.Name)
	}
	if given.Allow != nil && !given.Host { // that is all of the grant
		p.Host = false
	}
	if host, err = hostOf(p.Preset, args); err == nil && host != nil && p.Host {
		p.Allow = lacking(p.Allow, host.Grant())
		if p.Budget.Tokens == nil && p.Budget.USD == nil { // else what it asked its model for with a login of its own would not be counted
			p.Hosts = lacking(p.Hosts, host.Servers)
		}
	}
	if err == nil {
		err = permitHelpers(p)
	}
	return p, err
}

// ruled returns an error if the kernel has not loaded the profile's rules in their current form.
func ruled(ctx context.Context, c *client.Client, p *profile.Profile) error {
	if p.Policy == "" {
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
	return profile.Names(policy.Profiles(client.ConfigFile())), cobra.ShellCompDirectiveNoFileComp
}
