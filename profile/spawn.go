package profile

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// Here is where a profile is used.
type Here struct {
	Dir    string // paths are below it
	Home   string // ~/ means this; "": it is not known
	Lookup func(variable string) (value string, set bool)
}

// Path returns the absolute path that a path of a profile means.
func (h Here) Path(path string) (string, error) {
	rest, below := strings.CutPrefix(path, "~/")
	switch {
	case below && h.Home == "":
		return "", fmt.Errorf("find %s: HOME is not set", path)
	case below:
		return filepath.Join(h.Home, rest), nil
	case filepath.IsAbs(path):
		return filepath.Clean(path), nil
	}
	return filepath.Join(h.Dir, path), nil
}

// Placed returns a path that depends on the working directory; "" if there is none.
func (p *Profile) Placed() string {
	paths := slices.Concat(p.Read, p.Write, p.Hide)
	if i := slices.IndexFunc(paths, func(path string) bool { return !filepath.IsAbs(path) && !strings.HasPrefix(path, "~/") }); i >= 0 {
		return paths[i]
	}
	return ""
}

// Program returns how the program is run: its environment, limits, restarts, channel and sandbox.
func (p *Profile) Program(h Here) (program schema.Program, err error) {
	program = schema.Program{Publish: p.Publish, Restart: some(p.Restart), Channel: some(p.Channel), Limits: some(p.Limits), User: some(p.User)}
	for _, text := range p.Env {
		name, value, found := strings.Cut(text, "=")
		if !found {
			if value, found = h.Lookup(name); !found {
				return program, fmt.Errorf("the variable %s is not set here: give it a value with %s=value", name, name)
			}
		}
		program.SetVariable(name, value)
	}
	program.Sandbox, err = p.sandbox(h)
	return program, err
}

// sandbox returns the sandbox; nil is the default.
func (p *Profile) sandbox(h Here) (*schema.Sandbox, error) {
	s := &schema.Sandbox{Level: some(p.Level), Net: some(p.Net), AllowGaps: some(p.AllowGaps)}
	for _, list := range []struct {
		from []string
		to   *[]string
	}{{p.Read, &s.Read}, {p.Write, &s.Write}, {p.Hide, &s.Hide}} {
		for _, path := range list.from {
			path, err := h.Path(path)
			if err != nil {
				return nil, err
			}
			if real, err := filepath.EvalSymlinks(path); err == nil && list.to != &s.Hide { // the kernel accepts no links in the others
				path = real
			}
			*list.to = append(*list.to, path)
		}
	}
	if s.Level == nil && s.Net == nil && s.Read == nil && s.Write == nil && s.Hide == nil && s.AllowGaps == nil {
		return nil, nil
	}
	return s, nil
}

// Capability returns what the agent is granted, without an expiry; nil if no setting says anything about that.
func (p *Profile) Capability() *schema.SpawnCapability {
	c := &schema.SpawnCapability{AllowedSyscalls: p.Allow, ResourceQuotas: p.Quotas, Budget: some(p.Budget)}
	if p.Hosts != nil || p.HTTPPlain || p.HTTPOpen {
		c.HTTP = &schema.HTTPGrant{Hosts: append([]string{}, p.Hosts...), Plain: p.HTTPPlain, Open: p.HTTPOpen}
	}
	if c.AllowedSyscalls != nil {
		c.AllowedSyscalls = append(c.AllowedSyscalls[:len(c.AllowedSyscalls):len(c.AllowedSyscalls)], p.Services()...)
	}
	if c.AllowedSyscalls == nil && p.Localhost == nil && c.ResourceQuotas == nil && c.HTTP == nil && c.Budget == nil && p.TTL == 0 {
		return nil
	}
	return c
}

// Services are the patterns of the services of this machine that the agent is granted, which Capability has only beside other
// syscalls: without any, the default grant is meant, to which these are added.
func (p *Profile) Services() (patterns []string) {
	for _, port := range p.Localhost {
		patterns = append(patterns, "Localhost:"+port)
	}
	return patterns
}

// some returns a pointer to v, or nil if v is zero.
func some[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}
