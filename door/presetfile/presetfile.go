// Package presetfile reads a user's declaration of an agent host, a file of TOML.
package presetfile

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"sync"

	"github.com/pelletier/go-toml/v2"

	"github.com/promptware-os/pwos/door/preset"
)

// file has the members of preset.Host that a file may have.
type file struct {
	Name      string            `toml:"name"`
	Package   string            `toml:"package"`
	Args      []string          `toml:"args"`
	Env       map[string]string `toml:"env"`
	Passes    []string          `toml:"passes"`
	Files     map[string]string `toml:"files"`
	Brings    []string          `toml:"brings"`
	Reserved  []string          `toml:"reserved"`
	FailsOpen bool              `toml:"fails_open"`
	Servers   []string          `toml:"servers"`
	Tools     struct {
		Read   []string `toml:"read"`
		Write  []string `toml:"write"`
		Run    []string `toml:"run"`
		Search []string `toml:"search"`
	} `toml:"tools"`
	ACP *struct {
		Args    []string          `toml:"args"`
		Adapter string            `toml:"adapter"`
		Package string            `toml:"package"`
		Runs    string            `toml:"runs"`
		Env     map[string]string `toml:"env"`
	} `toml:"acp"`
	Upstreams []struct {
		Name string            `toml:"name"`
		Env  map[string]string `toml:"env"`
	} `toml:"upstreams"`
}

// Parse returns the host that a text declares. at is its place, which errors name.
func Parse(at string, text []byte) (*preset.Host, error) {
	var f file
	if err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(&f); err != nil {
		if strict, ok := errors.AsType[*toml.StrictMissingError](err); ok {
			first := strict.Errors[0]
			line, _ := first.Position()
			return nil, fmt.Errorf("preset %s:%d: there is no member %v", at, line, first.Key())
		}
		if bad, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, _ := bad.Position()
			return nil, fmt.Errorf("preset %s:%d: %w", at, line, err)
		}
		return nil, fmt.Errorf("preset %s: %w", at, err)
	}
	h := &preset.Host{
		Name: f.Name, Package: f.Package, Args: f.Args, Env: f.Env, Passes: f.Passes, Files: f.Files, Brings: f.Brings, Reserved: f.Reserved, FailsOpen: f.FailsOpen,
		Servers: f.Servers, Tools: preset.Tools(f.Tools),
	}
	if a := f.ACP; a != nil {
		h.ACP = &preset.ACP{Args: a.Args, Adapter: a.Adapter, Package: a.Package, Runs: a.Runs, Env: a.Env}
	}
	for _, u := range f.Upstreams {
		h.Upstreams = append(h.Upstreams, preset.Upstream(u))
	}
	if err := check(h); err != nil {
		return nil, fmt.Errorf("preset %s: %w", at, err)
	}
	return h, nil
}

// Names of a host and of an upstream, and of a variable.
var (
	isName     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`) })
	isVariable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })
)

// check returns what is wrong with a host.
func check(h *preset.Host) error {
	switch {
	case h.Name == "":
		return errors.New("name is missing: that of the host in grants, as in Tool:NAME/TOOL")
	case !isName().MatchString(h.Name):
		return fmt.Errorf("name takes letters, digits and hyphens, such as aider, not %q", h.Name)
	case preset.Named(h.Name) != nil:
		return fmt.Errorf("%s is a host that pwos knows: choose another name", h.Name)
	}
	variables := append(slices.Collect(maps.Keys(h.Env)), h.Passes...)
	if a := h.ACP; a != nil {
		if (a.Adapter == "") != (a.Runs == "") || a.Adapter == "" && len(a.Args) == 0 {
			return errors.New("acp takes the args with which the host speaks it, or an adapter and in runs the variable that names it the host's program")
		}
		variables = append(append(variables, slices.Collect(maps.Keys(a.Env))...), a.Runs)
		if a.Runs == "" {
			variables = variables[:len(variables)-1]
		}
	}
	for _, u := range h.Upstreams {
		if !isName().MatchString(u.Name) {
			return fmt.Errorf("upstreams.name takes that of an upstream, such as openai, not %q", u.Name)
		}
		variables = append(variables, slices.Collect(maps.Keys(u.Env))...)
	}
	slices.Sort(variables)
	for _, name := range variables {
		if !isVariable().MatchString(name) {
			return fmt.Errorf("%q is no name of a variable", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.Files)) {
		if !filepath.IsLocal(name) || filepath.Clean(name) != name || name == "." {
			return fmt.Errorf("files are named by their path below the home, not %q", name)
		}
	}
	for _, name := range h.Brings {
		if !filepath.IsLocal(name) || filepath.Clean(name) != name || name == "." {
			return fmt.Errorf("brings names files by their path below the home, not %q", name)
		}
	}
	_, err := h.Start(&preset.Doors{Server: []string{"pwos"}, Hook: []string{"pwos"}, Home: "/"})
	return err
}
