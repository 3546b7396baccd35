package hostfile

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
)

// Table returns a named table of a table of tables, as in [mcp_servers.pwos]; nil if there is none.
func Table(text []byte, in, name string) (map[string]any, error) {
	table, _, err := tables(text, in, name)
	return table, err
}

// Value returns the value at a path of keys in a TOML text; nil if there is none.
func Value(text []byte, path ...string) (any, error) {
	var root map[string]any
	if err := toml.Unmarshal(text, &root); err != nil {
		return nil, fmt.Errorf("it is not TOML: %w", err)
	}
	var at any = root
	for _, key := range path {
		table, _ := at.(map[string]any)
		at = table[key]
	}
	return at, nil
}

// SetTable returns a TOML text with a table in.name whose lines are body. It replaces an existing table.
func SetTable(text []byte, in, name, body string) ([]byte, error) {
	block := fmt.Sprintf("[%s.%s]\n%s", in, name, body)
	was, _, err := tables(text, in, name)
	if err != nil {
		return nil, err
	}
	want, _, err := tables([]byte(block), in, name)
	if err != nil {
		return nil, fmt.Errorf("the new entry is not TOML: %w", err)
	}
	if reflect.DeepEqual(was, want) {
		return text, nil
	}
	begin, end := span(text, in, name)
	switch {
	case was != nil && begin < 0:
		return nil, fmt.Errorf("%s.%s in it is written in a form that cannot be replaced: write it as a table [%s.%s], or remove it", in, name, in, name)
	case begin < 0:
		text = bytes.TrimRight(text, "\n")
		if len(text) > 0 {
			block = "\n\n" + block
		}
		begin, end = len(text), len(text)
	}
	return replaced(text, begin, end, block, in, name, want)
}

// RemoveTable returns a TOML text without the table in.name.
func RemoveTable(text []byte, in, name string) ([]byte, error) {
	was, _, err := tables(text, in, name)
	if err != nil || was == nil {
		return text, err
	}
	begin, end := span(text, in, name)
	if begin < 0 {
		return nil, fmt.Errorf("%s.%s in it is written in a form that cannot be removed", in, name)
	}
	for begin > 0 && text[begin-1] == '\n' { // remove the blank lines before the table
		begin--
	}
	between := ""
	switch {
	case begin == 0:
		end += len(text[end:]) - len(bytes.TrimLeft(text[end:], "\n"))
	case end == len(text) || text[end] == '\n':
		between = "\n"
	default:
		between = "\n\n"
	}
	return replaced(text, begin, end, between, in, name, nil)
}

// replaced returns text with block in place of a part. It returns an error unless the table is then want and all other values are
// unchanged.
func replaced(text []byte, begin, end int, block, in, name string, want map[string]any) ([]byte, error) {
	_, before, err := tables(text, in, name)
	if err != nil {
		return nil, err
	}
	out := bytes.Join([][]byte{text[:begin], []byte(block), text[end:]}, nil)
	table, after, err := tables(out, in, name)
	if err != nil || !reflect.DeepEqual(table, want) || !reflect.DeepEqual(before, after) {
		return nil, errors.Join(fmt.Errorf("%s.%s cannot be changed without changing more: edit it by hand", in, name), err)
	}
	return out, nil
}

// tables parses a TOML text. It returns the table in.name, nil if it does not exist, and all other values.
func tables(text []byte, in, name string) (table, rest map[string]any, err error) {
	rest = make(map[string]any)
	if err := toml.Unmarshal(text, &rest); err != nil {
		return nil, nil, fmt.Errorf("it is not TOML: %w", err)
	}
	all, ok := rest[in]
	if !ok {
		return nil, rest, nil
	}
	holder, ok := all.(map[string]any)
	if !ok {
		return nil, nil, fmt.Errorf("%s in it is not a table", in)
	}
	one, ok := holder[name]
	delete(holder, name)
	if len(holder) == 0 {
		delete(rest, in)
	}
	if !ok {
		return nil, rest, nil
	}
	if table, ok = one.(map[string]any); !ok {
		return nil, nil, fmt.Errorf("%s.%s in it is not a table", in, name)
	}
	return table, rest, nil
}

// header matches the header line of a table.
var header = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*\[\[?([^\[\]]+)\]\]?\s*(#.*)?$`) })

// span returns the byte offsets at which the lines of a table and its subtables begin and end; begin is -1 if there are none.
func span(text []byte, in, name string) (begin, end int) {
	begin, end = -1, -1
	at, comments := 0, 0 // comments above a table belong to it
	for line := range strings.Lines(string(text)) {
		trimmed := strings.TrimSpace(line)
		if m := header().FindStringSubmatch(strings.TrimRight(line, "\r\n")); m != nil {
			key := strings.NewReplacer(" ", "", "\t", "", `"`, "", "'", "").Replace(m[1])
			mine := key == in+"."+name || strings.HasPrefix(key, in+"."+name+".")
			switch {
			case mine && begin < 0:
				begin = at
			case !mine && begin >= 0:
				return begin, comments
			}
		}
		at += len(line)
		if trimmed != "" && !strings.HasPrefix(trimmed, "#") {
			comments = at
		}
	}
	if begin >= 0 {
		end = at
	}
	return begin, end
}
