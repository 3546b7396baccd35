package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/promptware-os/pwos/internal/tomlname"
)

// anyName matches the name of a pool or an upstream.
const anyName = "<name>"

// Prefixes of keys whose next word the user chooses.
const (
	pools  = "resources."
	priced = "prices."
	mounts = "mounts."
)

// denials is the only setting that is a list of tables.
const denials = "ipc.deny"

// inspector walks the syntax tree of a decoded text. The library's strict mode accepts Log.LEVEL for log.level, also if
// both are there, and 60 for a duration, which would be nanoseconds. Nor does it report the line of a value that is found
// invalid later.
type inspector struct {
	parser unstable.Parser
	known  []setting
	lines  map[string]int
}

// inspect returns the line of each setting in text.
func inspect(text []byte) (lines map[string]int, wrong *Error) {
	in := inspector{known: new(Config).settings(), lines: make(map[string]int)}
	in.parser.Reset(text)
	var table []string
	for in.parser.NextExpression() {
		e := in.parser.Expression()
		switch e.Kind {
		case unstable.KeyValue:
			wrong = in.entry(table, e)
		case unstable.Table, unstable.ArrayTable:
			table = tomlname.Words(nil, e)
			in.upstream(table, e)
			if !in.isTable(table) {
				wrong = noSuch(tomlname.Join(table), tomlname.Line(in.parser.Data(), e))
			} else if e.Kind == unstable.ArrayTable && tomlname.Join(table) != denials {
				wrong = &Error{Line: tomlname.Line(in.parser.Data(), e), Key: tomlname.Join(table), Text: "is not a list of tables"}
			}
		}
		if wrong != nil {
			return nil, wrong
		}
	}
	return in.lines, nil
}

// entry checks a name and its value, and the names in it if it is a table.
func (in *inspector) entry(table []string, e *unstable.Node) *Error {
	name, value := tomlname.Words(table, e), e.Value()
	in.upstream(name, e)
	if value.Kind == unstable.InlineTable && in.isTable(name) {
		for it := value.Children(); it.Next(); {
			if wrong := in.entry(name, it.Node()); wrong != nil {
				return wrong
			}
		}
		return nil
	}
	key := tomlname.Join(name)
	if slices.Contains([]string{upstreams, priced, mounts}, name[0]+".") {
		key = strings.Join(name, ".") // as in faults: the user's word may have other characters
	}
	i := slices.IndexFunc(in.known, func(s setting) bool { return fits(strings.Split(s.key, "."), name) })
	if i < 0 {
		return noSuch(key, tomlname.Line(in.parser.Data(), e))
	}
	kind := in.known[i].kind
	if value.Kind != kind && (kind != unstable.Float || value.Kind != unstable.Integer) {
		text := map[unstable.Kind]string{
			unstable.String: "takes a string", unstable.Integer: "takes an integer", unstable.Float: "takes a number",
			unstable.Array: "takes a list of strings",
		}[kind]
		if name[0]+"." == priced {
			text = "takes a list of numbers"
		}
		return &Error{Line: tomlname.Line(in.parser.Data(), e), Key: key, Text: text}
	}
	in.lines[key] = tomlname.Line(in.parser.Data(), e)
	return nil
}

// upstream records the line of the first mention of an upstream.
func (in *inspector) upstream(name []string, e *unstable.Node) {
	if len(name) < 2 || name[0]+"." != upstreams {
		return
	}
	if of := upstreams + name[1]; in.lines[of] == 0 {
		in.lines[of] = tomlname.Line(in.parser.Data(), e)
	}
}

// isTable reports whether a name is a table of settings.
func (in *inspector) isTable(name []string) bool {
	return slices.ContainsFunc(in.known, func(s setting) bool {
		pattern := strings.Split(s.key, ".")
		return len(pattern) > len(name) && fits(pattern[:len(name)], name)
	})
}

// fits reports whether a name matches a pattern, in which <…> is any word.
func fits(pattern, name []string) bool {
	return slices.EqualFunc(pattern, name, func(p, word string) bool { return p == word || p[0] == '<' })
}

// noSuch returns the error for an unknown key, which lists the existing ones: those of the table that key is in, or else
// the settings outside of tables, and the tables.
func noSuch(key string, line int) *Error {
	table, _, _ := strings.Cut(key, ".")
	inTable, names := make(map[string]bool), make(map[string]bool)
	for _, s := range new(Config).settings() {
		first, _, dotted := strings.Cut(s.key, ".")
		switch {
		case dotted && first == table:
			inTable[s.key] = true
		case dotted:
			names["["+first+"]"] = true
		default:
			names[s.key] = true
		}
	}
	if len(inTable) > 0 {
		names = inTable
	}
	return &Error{Line: line, Key: key, Text: "no setting has this name: there are " +
		strings.Join(slices.Sorted(maps.Keys(names)), ", ")}
}
