package config

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/pelletier/go-toml/v2"
)

// shipped are the profiles that are part of the program.
//
//go:embed profiles/*.toml
var shipped embed.FS

// Profile is a profile's file, which names flags of pwos run. A missing member is a missing flag.
type Profile struct {
	Name   string `toml:"-"`
	Policy string // a file of rules in its directory, which the kernel must enforce; "": none
	Grant  struct {
		Allow     []string
		Hosts     []string
		HTTPPlain bool `toml:"http_plain"`
		HTTPOpen  bool `toml:"http_open"`
		Quotas    map[string]float64
		TTL       string
	}
	Sandbox struct {
		Level, Net        string
		Read, Write, Hide []string
	}
	Limits map[string]int64
	Budget struct {
		Calls, Fetches, Tokens *int64
		USD                    *float64
		WallSeconds            *int64 `toml:"wall_seconds"`
	}
}

// ReadProfile reads the profile with a name from the directory, or a shipped one. Its errors mean wrong usage.
func ReadProfile(dir, name string) (*Profile, error) {
	if !IsProfileName(name) {
		return nil, fmt.Errorf("--profile takes the name of a profile, not %q: %s", name, strings.Join(Profiles(dir), ", "))
	}
	at := filepath.Join(dir, name+".toml")
	text, err := os.ReadFile(at)
	if errors.Is(err, fs.ErrNotExist) {
		at = name + ".toml"
		if text, err = shipped.ReadFile("profiles/" + at); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("there is no profile %q: the profiles are %s; others can be added in %s", name, strings.Join(Profiles(dir), ", "), dir)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read profile: %w", err)
	}
	p := &Profile{Name: name}
	if err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(p); err != nil {
		wrong := explain(err)
		if _, ok := errors.AsType[*toml.StrictMissingError](err); ok {
			wrong.Text = "there is no such setting in a profile: docs/profiles.md has all"
		}
		return nil, fmt.Errorf("profile %s:%d: %s: %s", at, wrong.Line, wrong.Key, wrong.Text)
	}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("profile %s: %w", at, err)
	}
	return p, nil
}

// maxProfileName bounds a profile's name in bytes, since the names of its rules begin with it.
const maxProfileName = 100

// IsProfileName reports whether a text is a valid name of a profile.
func IsProfileName(name string) bool {
	return name != "" && len(name) <= maxProfileName && !strings.ContainsAny(name, "/\\") && !strings.HasPrefix(name, ".") &&
		!strings.ContainsFunc(name, unicode.IsControl)
}

func (p *Profile) check() error {
	for _, one := range []struct {
		key, value string
		values     []string
	}{
		{"sandbox.level", p.Sandbox.Level, []string{"", "default", "strict", "off"}},
		{"sandbox.net", p.Sandbox.Net, []string{"", "none", "kernel", "open"}},
	} {
		if !slices.Contains(one.values, one.value) {
			return fmt.Errorf("%s must be one of %s, not %q", one.key, strings.Join(one.values[1:], ", "), one.value)
		}
	}
	for _, amount := range []struct {
		key   string
		value *int64
	}{{"calls", p.Budget.Calls}, {"fetches", p.Budget.Fetches}, {"tokens", p.Budget.Tokens}, {"wall_seconds", p.Budget.WallSeconds}} {
		if amount.value != nil && *amount.value < 0 {
			return fmt.Errorf("budget.%s must not be negative", amount.key)
		}
	}
	switch {
	case p.Grant.Allow != nil && len(p.Grant.Allow) == 0:
		return errors.New(`grant.allow must name at least one syscall: Syscall.Ping adds no right, since every agent may call it`)
	case p.Budget.USD != nil && !(*p.Budget.USD >= 0):
		return errors.New("budget.usd must not be negative")
	case p.Policy != "" && (filepath.Base(p.Policy) != p.Policy || !strings.HasSuffix(p.Policy, ".cedar") || strings.HasPrefix(p.Policy, ".")):
		return fmt.Errorf("policy must be the name of a file beside the profile that ends in .cedar, not %q", p.Policy)
	}
	return nil
}

// Profiles returns the names of all profiles, in the directory and shipped, sorted.
func Profiles(dir string) []string {
	all := make(map[string]bool)
	note := func(in fs.FS) {
		paths, err := fs.Glob(in, "*.toml")
		if err != nil { // the pattern is invalid
			return
		}
		for _, path := range paths {
			if !strings.HasPrefix(path, ".") {
				all[strings.TrimSuffix(path, ".toml")] = true
			}
		}
	}
	if inside, err := fs.Sub(shipped, "profiles"); err == nil {
		note(inside)
	}
	if dir != "" {
		note(os.DirFS(dir))
	}
	return slices.Sorted(maps.Keys(all))
}
