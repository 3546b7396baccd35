package profile

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// OfProject returns the profile that a project's file names, or otherwise the one with that name, narrowed by the settings of the file.
// at is the file's place, which errors name; read returns the profile of a name.
func OfProject(at string, text []byte, read func(name string) (*Profile, error), otherwise string) (*Profile, error) {
	by, name := new(Profile), otherwise
	names := &Setting{Key: "profile", Takes: "the name of a profile", at: &name}
	if line, err := by.decode(text, names); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", at, line, err)
	}
	p, err := read(name)
	if err == nil {
		err = p.narrow(by)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	return p, nil
}

// narrow applies settings that only narrow the profile, and refuses others.
func (p *Profile) narrow(by *Profile) error {
	mine := p.settings()
	for i, s := range by.settings() {
		if s.value() == nil {
			continue
		}
		table, _, _ := strings.Cut(s.Key, ".")
		switch at := mine[i].at.(type) {
		case **int64:
			if given := *s.at.(**int64); *at == nil || *given < **at {
				*at = given
			}
		case **float64:
			if given := *s.at.(**float64); *at == nil || *given < **at {
				*at = given
			}
		}
		switch s.Key {
		case "grant.allow":
			p.Allow = narrowed(p.Allow, by.Allow)
		case "grant.hosts":
			p.Hosts = narrowed(p.Hosts, by.Hosts)
		case "grant.ttl":
			p.TTL = min(by.TTL, cmp.Or(p.TTL, by.TTL))
		case "sandbox.hide":
			p.Hide = append(slices.Clip(p.Hide), by.Hide...)
		case "sandbox.review":
			p.Review = true
		case "sandbox.read":
			if i := slices.IndexFunc(by.Read, func(path string) bool { return !filepath.IsLocal(path) || strings.HasPrefix(path, "~/") }); i >= 0 {
				return fmt.Errorf("sandbox.read of a project names what it may only read of itself, not %s", by.Read[i])
			}
			p.Read = append(slices.Clip(p.Read), by.Read...)
		case "sandbox.net":
			if by.Net != "none" && by.Net != p.Net {
				return fmt.Errorf("sandbox.net of a project is none, not %s", by.Net)
			}
			p.Net = by.Net
		case "sandbox.level":
			if by.Level != "strict" && by.Level != p.Level {
				return fmt.Errorf("sandbox.level of a project is strict, not %s", by.Level)
			}
			p.Level = by.Level
		default:
			if table != "limits" && table != "budget" {
				return fmt.Errorf("%s cannot be set for a project, which may name a profile and narrow it", s.Key)
			}
		}
	}
	return nil
}

// narrowed returns what a list of a project may have of that of its profile: what is in it, or is of one of its patterns.
func narrowed(list, to []string) []string {
	kept := []string{}
	for _, one := range to {
		if slices.ContainsFunc(list, func(pattern string) bool {
			head, tail, star := strings.Cut(pattern, "*")
			return one == pattern || star && len(one) >= len(head)+len(tail) && strings.HasPrefix(one, head) && strings.HasSuffix(one, tail) && !strings.Contains(one, "*")
		}) {
			kept = append(kept, one)
		}
	}
	return kept
}
