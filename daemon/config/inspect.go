package config

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// keys are the settings that there are, with the type of their values in the file.
func keys() map[string]unstable.Kind {
	return map[string]unstable.Kind{
		"runtime_dir":         unstable.String,
		"state_dir":           unstable.String,
		"idle_timeout":        unstable.String,
		"authorized_keys":     unstable.String,
		"log.level":           unstable.String,
		"log.format":          unstable.String,
		"limits.line_bytes":   unstable.Integer,
		"root":                unstable.String,
		"init":                unstable.String,
		"origin":              unstable.String,
		"ingest.trusted_keys": unstable.String,
		"ingest.proof":        unstable.Bool,
		"ingest.unpinned":     unstable.Bool,
		"tools.programs":      unstable.Bool,
		"tools.time":          unstable.String,
		"tools.memory_bytes":  unstable.Integer,
		"tools.output_bytes":  unstable.Integer,
		"tools.at_once":       unstable.Integer,
		"code.time":           unstable.String,
		"code.memory_bytes":   unstable.Integer,
		"code.output_bytes":   unstable.Integer,
		"code.at_once":        unstable.Integer,
		"clock.interval":      unstable.String,
		"ipc.mailbox":         unstable.Integer,

		"crypto.identity": unstable.String,

		"journal.sync":           unstable.String,
		"journal.sync_interval":  unstable.String,
		"journal.snapshot_every": unstable.Integer,

		"http.allow":          unstable.Array,
		"http.allow_hosts":    unstable.Array,
		"http.ca_file":        unstable.String,
		"http.max_body_bytes": unstable.Integer,

		"blobs.ttl":        unstable.String,
		"blobs.file_bytes": unstable.Integer,
		"blobs.dir_bytes":  unstable.Integer,
		"blobs.dir_files":  unstable.Integer,

		"approval.wait":   unstable.String,
		"approval.notify": unstable.Array,

		"agents.grace":         unstable.String,
		"agents.restart_delay": unstable.String,
		"agents.read":          unstable.Array,
		"agents.hide":          unstable.Array,
		"agents.user":          unstable.String,

		"agents.connections":              unstable.Integer,
		"agents.prologues":                unstable.Integer,
		"agents.in_flight_bytes":          unstable.Integer,
		"agents.journal_bytes_per_second": unstable.Integer,
		"agents.journal_burst_bytes":      unstable.Integer,

		"ipc.deny.intent":       unstable.String,
		"ipc.deny.sender_pid":   unstable.Integer,
		"ipc.deny.receiver_pid": unstable.Integer,

		"net.connections_each": unstable.Integer,
		"net.connections":      unstable.Integer,
		"net.idle":             unstable.String,

		upstreams + anyName + ".url":       unstable.String,
		upstreams + anyName + ".header":    unstable.String,
		upstreams + anyName + ".from":      unstable.String,
		upstreams + anyName + ".allow":     unstable.Array,
		upstreams + anyName + ".env":       unstable.String,
		upstreams + anyName + ".intercept": unstable.Bool,

		pools + anyName:     unstable.Float,
		priced + "<model>":  unstable.Array,
		mounts + "<prefix>": unstable.String,
	}
}

// anyName stands for the name of a pool or an upstream.
const anyName = "<name>"

// pools begins the key of every resource pool; the rest is the pool's name.
const pools = "resources."

// priced begins the key of every price; the rest is the model's name.
const priced = "prices."

// mounts begins the key of every mount; the rest is the names that it holds.
const mounts = "mounts."

// denials is the one list of tables.
const denials = "ipc.deny"

// inspector walks the syntax tree of a text that has been decoded. The library's strict mode lets pass Log.LEVEL for
// log.level, even beside it, and 60 for a duration, which would be nanoseconds; and it forgets the line of a value that
// turns out to be wrong only later.
type inspector struct {
	parser unstable.Parser
	known  map[string]unstable.Kind
	lines  map[string]int
}

// inspect returns the line of each setting in text.
func inspect(text []byte) (lines map[string]int, wrong *Error) {
	in := inspector{known: keys(), lines: make(map[string]int)}
	in.parser.Reset(text)
	var table []string
	for in.parser.NextExpression() {
		e := in.parser.Expression()
		switch e.Kind {
		case unstable.KeyValue:
			wrong = in.entry(table, e)
		case unstable.Table:
			table, wrong = in.heading(e)
		case unstable.ArrayTable:
			if table, wrong = in.heading(e); wrong == nil && join(table) != denials {
				wrong = &Error{Line: in.line(e), Key: join(table), Text: "is not a list of tables"}
			}
		}
		if wrong != nil {
			return nil, wrong
		}
	}
	return in.lines, nil
}

func (in *inspector) heading(e *unstable.Node) ([]string, *Error) {
	name := words(nil, e)
	if !in.holds(generic(name)) {
		return nil, noSuch(join(name), in.line(e))
	}
	if of := upstreamOf(name); of != "" {
		in.lines[of] = in.line(e)
	}
	return name, nil
}

// entry looks at one name with its value, and at what is in the value where that is a table.
func (in *inspector) entry(table []string, e *unstable.Node) *Error {
	name := words(table, e)
	key, value := join(name), e.Value()
	if value.Kind == unstable.InlineTable && in.holds(generic(name)) {
		for it := value.Children(); it.Next(); {
			if wrong := in.entry(name, it.Node()); wrong != nil {
				return wrong
			}
		}
		return nil
	}
	kind, ok := in.known[generic(name)]
	if of := upstreamOf(name); of != "" {
		key = of + strings.TrimPrefix(generic(name), upstreams+anyName) // as it is told of
		if in.lines[of] == 0 {
			in.lines[of] = in.line(e)
		}
	}
	if len(name) == 2 && strings.HasPrefix(key, pools) {
		kind, ok = unstable.Float, true
	}
	if len(name) == 2 && strings.HasPrefix(key, priced) {
		kind, ok = unstable.Array, true
		key = priced + name[1]
	}
	if len(name) == 2 && strings.HasPrefix(key, mounts) {
		kind, ok = unstable.String, true
		key = mounts + name[1] // as it is told of: a prefix has more than letters in it
	}
	if !ok {
		return noSuch(key, in.line(e))
	}
	if strings.HasPrefix(key, priced) && value.Kind != kind {
		return &Error{Line: in.line(e), Key: key, Text: "takes a list of numbers"}
	}
	if value.Kind != kind && (kind != unstable.Float || value.Kind != unstable.Integer) {
		return &Error{Line: in.line(e), Key: key, Text: map[unstable.Kind]string{
			unstable.String: "takes a string", unstable.Integer: "takes an integer", unstable.Float: "takes a number",
			unstable.Array: "takes a list of strings",
		}[kind]}
	}
	in.lines[key] = in.line(e)
	return nil
}

// upstreamOf is the key of the upstream that a name lies in, "" where it lies in none.
func upstreamOf(name []string) string {
	if len(name) < 2 || name[0]+"." != upstreams {
		return ""
	}
	return upstreams + name[1]
}

// generic writes a name as keys has it: the name of an upstream stands for any.
func generic(name []string) string {
	if upstreamOf(name) != "" {
		return upstreams + strings.Join(append([]string{anyName}, name[2:]...), ".")
	}
	return join(name)
}

// holds reports whether key is a table of settings.
func (in *inspector) holds(key string) bool {
	for known := range in.known {
		if strings.HasPrefix(known, key+".") {
			return true
		}
	}
	return false
}

// line returns where the name of e stands.
func (in *inspector) line(e *unstable.Node) int {
	name := e.Key()
	name.Next()
	return 1 + bytes.Count(in.parser.Data()[:name.Node().Raw.Offset], []byte("\n"))
}

// words returns table with the name of e, a setting or a table, after it.
func words(table []string, e *unstable.Node) []string {
	name := slices.Clone(table)
	for it := e.Key(); it.Next(); {
		name = append(name, string(it.Node().Data))
	}
	return name
}

// join writes a name as one key. A word that is none of ours stays in quotes: "log.level" is not log.level.
func join(name []string) string {
	plain := func(c rune) bool { return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
	var parts []string
	for _, word := range name {
		if strings.ContainsFunc(word, func(c rune) bool { return !plain(c) }) {
			word = fmt.Sprintf("%q", word)
		}
		parts = append(parts, word)
	}
	return strings.Join(parts, ".")
}

// noSuch names what there is instead: in the table that key is of, else the settings outside of tables, and the tables.
func noSuch(key string, line int) *Error {
	table, _, _ := strings.Cut(key, ".")
	inTable, names := make(map[string]bool), make(map[string]bool)
	for known := range keys() {
		first, _, dotted := strings.Cut(known, ".")
		switch {
		case dotted && first == table:
			inTable[known] = true
		case dotted:
			names["["+first+"]"] = true
		default:
			names[known] = true
		}
	}
	if len(inTable) > 0 {
		names = inTable
	}
	return &Error{Line: line, Key: key, Text: "no setting has this name: there are " +
		strings.Join(slices.Sorted(maps.Keys(names)), ", ")}
}
