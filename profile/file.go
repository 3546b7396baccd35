package profile

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/promptware-os/pwos/internal/tomlname"
	"github.com/promptware-os/pwos/schema"
)

// decoder sets the settings of a file.
type decoder struct {
	parser unstable.Parser
	rows   []*Setting
	tree   map[string]any // the file's values
}

// decode sets the settings of a file, and others that it may have. An error has its line.
func (p *Profile) decode(text []byte, others ...*Setting) (line int, err error) {
	d := decoder{rows: append(p.settings(), others...)}
	if err := toml.Unmarshal(text, &d.tree); err != nil {
		if at, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, _ = at.Position()
		}
		return line, errors.New(strings.TrimPrefix(err.Error(), "toml: "))
	}
	d.parser.Reset(text)
	var table []string
	for d.parser.NextExpression() {
		switch e := d.parser.Expression(); e.Kind {
		case unstable.KeyValue:
			line, err = d.entry(table, e)
		case unstable.ArrayTable:
			line, err = tomlname.Line(d.parser.Data(), e), fmt.Errorf("%s is not a list of tables", tomlname.Join(tomlname.Words(nil, e)))
		case unstable.Table:
			table = tomlname.Words(nil, e)
			if !isTable(d.rows, table) {
				line, err = tomlname.Line(d.parser.Data(), e), unknown(d.rows, table)
			}
		}
		if err != nil {
			return line, err
		}
	}
	return 0, nil
}

// entry sets the settings of a name and its value.
func (d *decoder) entry(table []string, e *unstable.Node) (line int, err error) {
	name := tomlname.Words(table, e)
	s := find(d.rows, name)
	switch {
	case e.Value().Kind == unstable.InlineTable && isTable(d.rows, name):
		for it := e.Value().Children(); it.Next(); {
			if line, err := d.entry(name, it.Node()); err != nil {
				return line, err
			}
		}
		return 0, nil
	case isTable(d.rows, name):
		return tomlname.Line(d.parser.Data(), e), fmt.Errorf("%s is a table", tomlname.Join(name))
	case s == nil:
		return tomlname.Line(d.parser.Data(), e), unknown(d.rows, name)
	}
	var value any = d.tree
	for _, word := range name {
		in, _ := value.(map[string]any)
		value = in[word]
	}
	if !s.load(name[len(name)-1], value) {
		shown := fmt.Sprint(value)
		if text, ok := value.(string); ok {
			shown = strconv.Quote(text)
		}
		return tomlname.Line(d.parser.Data(), e), fmt.Errorf("%s takes %s, not %s", tomlname.Join(name), s.Takes, shown)
	}
	return 0, nil
}

// find returns the setting with a name, or the one that is an open table which has the name. Case is ignored.
func find(rows []*Setting, name []string) *Setting {
	i := slices.IndexFunc(rows, func(s *Setting) bool {
		of := name
		if s.form() != "" {
			of = name[:len(name)-1]
		}
		return slices.EqualFunc(of, strings.Split(s.Key, "."), strings.EqualFold)
	})
	if i < 0 {
		return nil
	}
	return rows[i]
}

// isTable reports whether settings are in a table.
func isTable(rows []*Setting, name []string) bool {
	table := strings.ToLower(strings.Join(name, "."))
	return slices.ContainsFunc(rows, func(s *Setting) bool { return strings.HasPrefix(s.Key, table+".") || s.form() != "" && s.Key == table })
}

// unknown returns the error for a name that no setting has. It names a setting that may be meant, or those of the same table.
func unknown(rows []*Setting, name []string) error {
	key := tomlname.Join(name)
	table, word, _ := strings.Cut(key, ".")
	var keys, words []string
	for _, s := range rows {
		keys = append(keys, s.Key)
		if below, ok := strings.CutPrefix(s.Key, table+"."); ok {
			words = append(words, below)
		}
	}
	wrong, near := "there is no setting "+key, ""
	if len(words) == 0 {
		near = schema.Nearest(key, slices.Values(keys))
	} else if near = schema.Nearest(word, slices.Values(words)); near != "" {
		near = table + "." + near
	}
	switch {
	case near != "":
		return fmt.Errorf("%s; did you mean %s?", wrong, near)
	case len(words) > 0:
		return fmt.Errorf("%s: [%s] has %s", wrong, table, strings.Join(words, ", "))
	}
	return fmt.Errorf(`%s: "pwos help settings" lists all`, wrong)
}

// TOML returns the profile as a file.
func (p *Profile) TOML() ([]byte, error) {
	tree := make(map[string]any)
	for _, s := range p.settings() {
		value := s.value()
		if value == nil {
			continue
		}
		in, name := tree, s.Key
		if table, last, ok := strings.Cut(s.Key, "."); ok {
			below, _ := tree[table].(map[string]any)
			if below == nil {
				below = make(map[string]any)
				tree[table] = below
			}
			in, name = below, last
		}
		in[name] = value
	}
	text, err := toml.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("write profile: %w", err)
	}
	return text, nil
}
