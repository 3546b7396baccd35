// Package tomlname finds the names of settings in a TOML file that is being parsed.
package tomlname

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2/unstable"
)

// Line returns the line of the name of e in data, from 1 on.
func Line(data []byte, e *unstable.Node) int {
	name := e.Key()
	name.Next()
	return 1 + bytes.Count(data[:name.Node().Raw.Offset], []byte("\n"))
}

// Words returns table with the name of e, a setting or a table, appended.
func Words(table []string, e *unstable.Node) []string {
	name := slices.Clone(table)
	for it := e.Key(); it.Next(); {
		name = append(name, string(it.Node().Data))
	}
	return name
}

// bare are the words that need no quotes.
var bare = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("^[A-Za-z0-9_-]+$") })

// Join writes a name as one key. A word that TOML allows with quotes only keeps these: "log.level" is not log.level.
func Join(name []string) string {
	parts := make([]string, len(name))
	for i, word := range name {
		if parts[i] = word; !bare().MatchString(word) {
			parts[i] = strconv.Quote(word)
		}
	}
	return strings.Join(parts, ".")
}
