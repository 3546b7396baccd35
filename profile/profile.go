// Package profile describes how an agent is run. A Profile has its grant, sandbox, limits, budget and program. It is made of a file, a
// command line, or a file that a command line overrides; all follow one table of settings.
package profile

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/promptware-os/pwos/schema"
)

// Profile describes how an agent is run. A zero member is a missing setting.
type Profile struct {
	Name   string // of the file; "": there is none
	Policy string // a file of rules beside the profile, which the kernel must enforce

	Allow     []string // nil: the default grant
	Hosts     []string
	HTTPPlain bool
	HTTPOpen  bool
	Quotas    map[string]float64
	TTL       time.Duration
	Budget    schema.BudgetGrant

	// A path is absolute, below ~/, or below the working directory; see Here.
	Level, Net        string
	Read, Write, Hide []string
	AllowGaps         bool
	Limits            schema.Limits

	Env       []string // NAME=value, or NAME for a variable of the caller
	Dir, Home string
	OwnDir    bool
	Restart   string
	Channel   string
	Preset    string

	Snapshot struct { // a copy of the working directory from before the start
		Take  bool
		Limit *int64
		Skip  []string
	}
}

// shipped are the profiles that are part of the program.
//
//go:embed shipped/*.toml
var shipped embed.FS

// Read reads the profile with a name from the directory, or a shipped one. Its errors mean wrong usage.
func Read(dir, name string) (*Profile, error) {
	if !IsName(name) {
		return nil, fmt.Errorf("--profile takes the name of a profile, not %q: %s", name, strings.Join(Names(dir), ", "))
	}
	at := filepath.Join(dir, name+".toml")
	text, err := os.ReadFile(at)
	if errors.Is(err, fs.ErrNotExist) {
		at = name + ".toml"
		if text, err = shipped.ReadFile("shipped/" + at); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("there is no profile %q: the profiles are %s; others can be added in %s", name, strings.Join(Names(dir), ", "), dir)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read profile: %w", err)
	}
	p := &Profile{Name: name}
	if line, err := p.decode(text); err != nil {
		return nil, fmt.Errorf("profile %s:%d: %w", at, line, err)
	}
	return p, nil
}

// maxName bounds a profile's name in bytes, since the names of its rules begin with it.
const maxName = 100

// IsName reports whether a text is a valid name of a profile.
func IsName(name string) bool {
	return name != "" && len(name) <= maxName && !strings.ContainsAny(name, "/\\") && !strings.HasPrefix(name, ".") &&
		!strings.ContainsFunc(name, unicode.IsControl)
}

// Names returns the names of all profiles, in the directory and shipped, sorted.
func Names(dir string) []string {
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
	if inside, err := fs.Sub(shipped, "shipped"); err == nil {
		note(inside)
	}
	if dir != "" {
		note(os.DirFS(dir))
	}
	return slices.Sorted(maps.Keys(all))
}
