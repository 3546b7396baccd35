package main

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/policy"
	"github.com/promptware-os/pwos/schema"
)

// learnFlag is --learn, or --learn=NAME: what is learned is written as the profile of that name.
type learnFlag struct {
	on   bool
	name string
}

func (f *learnFlag) String() string { return f.name }

func (f *learnFlag) Type() string { return "NAME" }

// Set implements pflag.Value.
func (f *learnFlag) Set(text string) error {
	f.on, f.name = true, text
	if text == "true" { // without a name
		f.name = ""
	} else if !config.IsProfileName(text) {
		return fmt.Errorf("%q can be no profile's name", text)
	}
	return nil
}

// profilePaths are the files of a profile that is to be written: its grant and its rules.
func profilePaths(name string) (grant, rules string) {
	at := filepath.Join(policy.Profiles(client.ConfigFile()), name)
	return at + ".toml", at + ".cedar"
}

// free returns an error where a profile that is to be written is there already.
func free(name string) error {
	grant, rules := profilePaths(name)
	for _, path := range []string{grant, rules} {
		if _, err := os.Lstat(path); err == nil {
			return fmt.Errorf("--learn=%s would overwrite %s: remove it, or learn another", name, path)
		}
	}
	return nil
}

// writeProfile writes what was learned: a grant, with the sandbox that the program had, and rules.
func (j *job) writeProfile(l *lesson, peaks map[string]float64, servers httpNeed) error {
	grant, rules := profilePaths(j.learn.name)
	if err := os.MkdirAll(filepath.Dir(grant), 0o700); err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	if err := writeNew(rules, l.policy.Rules(j.learn.name)); err != nil {
		return err
	}
	return writeNew(grant, []byte(j.profileText(filepath.Base(rules), l.allow(), peaks, servers)))
}

// profileText is the file of a profile.
func (j *job) profileText(rules string, allow []string, quotas map[string]float64, servers httpNeed) string {
	var b strings.Builder
	texts := func(name string, list []string) {
		if len(list) > 0 {
			fmt.Fprintf(&b, "%s = %s\n", name, textList(list))
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
	texts("allow", allow)
	texts("hosts", servers.hosts)
	if servers.plain {
		b.WriteString("http_plain = true\n")
	}
	if servers.open {
		b.WriteString("http_open = true\n")
	}
	if len(quotas) > 0 {
		b.WriteString("\n[grant.quotas]\n")
		for _, resource := range slices.Sorted(maps.Keys(quotas)) {
			fmt.Fprintf(&b, "%s = %s\n", schema.AppendString(nil, resource), units(quotas[resource]))
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
		texts("read", s.Read)
		texts("write", s.Write)
		texts("hide", s.Hide)
	}
	return b.String()
}

// writeNew writes a file that is not there yet.
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

// notePolicy notes what rules can tell of a call.
func (l *lesson) notePolicy(e *schema.AuditEntry) {
	members, _ := objectOf(e.Request)
	switch e.Type {
	case schema.MemoryGet.Type, schema.MemorySet.Type, schema.MemoryCompareAndSet.Type, schema.MemoryDelete.Type:
		if key, ok := textOf(members["key"]); ok {
			l.policy.Key(e.Type, key)
		}
	case schema.MemoryList.Type:
		prefix, _ := textOf(members["prefix"])
		l.policy.List(prefix)
	}
}

// noteAddress notes an address that was fetched, or that a redirect led to.
func (l *lesson) noteAddress(method, address string) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return
	}
	l.policy.Fetches[policy.Fetched{Method: method, Host: strings.ToLower(u.Hostname())}] = true
}
