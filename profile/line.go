package profile

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Line has the settings of a command line, in its order. The zero Line has none.
type Line struct {
	given []given
	named []string // each name that a flag has set in a table, such as "--limit processes"
}

// given is a flag of a command line that sets settings.
type given struct {
	name, text string // "--net" and "none", or "--set sandbox.net" and "sandbox.net=none"
	covers     string // it replaces the settings of a file with this key or, if it ends in a dot, in this table
	values     []value
}

// value is the text of a setting, which is a row of the table.
type value struct {
	row  int
	text string
}

// Set adds --set KEY=VALUE. A path means the same as in a file.
func (l *Line) Set(text string) error {
	key, val, found := strings.Cut(text, "=")
	if !found {
		return fmt.Errorf("--set takes KEY=VALUE, not %q", text)
	}
	rows := new(Profile).settings()
	i := slices.IndexFunc(rows, func(s *Setting) bool { return key == s.Key || s.form() != "" && strings.HasPrefix(key, s.Key+".") })
	if i < 0 {
		return fmt.Errorf("--set: %w", unknown(rows, strings.Split(key, ".")))
	}
	if own := rows[i].Key; key != own {
		val = key[len(own)+1:] + "=" + val
	}
	return l.add(given{name: "--set " + key, text: text, covers: rows[i].Key, values: []value{{i, val}}})
}

// Flag adds a flag of Flags. A path is relative to the current directory.
func (l *Line) Flag(name, text string) error {
	rows, members := new(Profile).settings(), new(Profile).members()
	m := members[slices.IndexFunc(members, func(m *Setting) bool { return m.Flag == name })]
	g := given{name: "--" + name, text: text, covers: m.Key}
	row := slices.IndexFunc(rows, func(s *Setting) bool { return s.Key == m.Key })
	if row >= 0 && m.is("path") && text != "" {
		path, err := filepath.Abs(text)
		if err != nil {
			return fmt.Errorf("find --%s: %w", name, err)
		}
		text = path
	}
	if m.form() == "" {
		g.values = []value{{row, text}}
		return l.add(g)
	}
	parts := []string{text}
	if m.is("commas") {
		parts = slices.DeleteFunc(strings.Split(text, ","), func(string) bool { return text == "" })
	}
	if row < 0 {
		g.covers += "."
	}
	for _, part := range parts {
		key, val, found := strings.Cut(part, "=")
		one := value{row, part}
		if row < 0 {
			one = value{slices.IndexFunc(rows, func(s *Setting) bool { return s.Key == g.covers+key }), val}
		}
		switch is := g.name + " " + key; {
		case !found:
			return fmt.Errorf("%s takes %s, not %q", g.name, m.form(), part)
		case one.row < 0:
			return fmt.Errorf("%s: %w", g.name, unknown(rows, []string{m.Key, key}))
		case slices.Contains(l.named, is):
			return fmt.Errorf("%s names %s twice", g.name, key)
		default:
			l.named = append(l.named, is)
		}
		g.values = append(g.values, one)
	}
	return l.add(g)
}

// add adds a flag whose values are valid.
func (l *Line) add(g given) error {
	rows := new(Profile).settings()
	for _, v := range g.values {
		s := rows[v.row]
		if !s.put(v.text) {
			name, takes := g.name, strings.TrimPrefix(s.Takes, "a list of ")
			if strings.HasSuffix(g.covers, ".") {
				name += " " + strings.TrimPrefix(s.Key, g.covers)
			} else if s.form() != "" {
				takes = s.form() + ", with " + takes
			}
			return fmt.Errorf("%s takes %s, not %q", name, takes, v.text)
		}
	}
	l.given = append(l.given, g)
	return nil
}

// Over sets the settings of the command line in a profile. The first value of a setting replaces that of the profile; later ones replace
// it too, or add to it if it is a list. replaced are the flags that have replaced settings of the profile.
func (l *Line) Over(p *Profile) (replaced []string) {
	rows := p.settings()
	seen := make(map[*Setting]bool)
	for _, g := range l.given {
		had := false
		for _, s := range rows {
			if seen[s] || s.Key != g.covers && (!strings.HasSuffix(g.covers, ".") || !strings.HasPrefix(s.Key, g.covers)) {
				continue
			}
			seen[s], had = true, had || s.value() != nil
			s.discard()
		}
		if had {
			replaced = append(replaced, g.name)
		}
		for _, v := range g.values {
			rows[v.row].put(v.text)
		}
	}
	return replaced
}

// Profile returns the profile of a command line alone.
func (l *Line) Profile() *Profile {
	p := new(Profile)
	l.Over(p)
	return p
}

// Words returns the flags of the command line, without those of settings whose keys begin with a prefix.
func (l *Line) Words(without ...string) (words []string) {
	for _, g := range l.given {
		if slices.ContainsFunc(without, func(prefix string) bool { return strings.HasPrefix(g.covers, prefix) }) {
			continue
		}
		name, _, _ := strings.Cut(g.name, " ")
		words = append(words, name+"="+g.text)
	}
	return words
}
