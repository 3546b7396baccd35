package ingest

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// MaxFrontMatter is the longest front matter, in bytes.
const MaxFrontMatter = 64 << 10

// SplitFrontMatter splits a text into its front matter and the rest. A text has front matter if the first line is exactly
// --- (YAML) or +++ (TOML). It ends at the next such line, for YAML also at a line of three dots. White space at the end of
// these lines is ignored. fence is 0 (no front matter), '-' or '+'. The error is IngestInvalid if the front matter has no end or is
// too long.
func SplitFrontMatter(text []byte) (front, content []byte, fence byte, err error) {
	first, rest := line(text)
	switch string(first) {
	case "---", "+++":
		fence = first[0]
	default:
		return nil, text, 0, nil
	}
	for at := 0; at < len(rest); {
		next, after := line(rest[at:])
		if string(next) == string(first) || fence == '-' && string(next) == "..." {
			if at > MaxFrontMatter {
				break
			}
			return rest[:at], after, fence, nil
		}
		at = len(rest) - len(after)
	}
	return nil, nil, 0, invalid("a line with only %s must end it within %d bytes", first, MaxFrontMatter)
}

// line returns the first line of text, without white space at its end, and the rest.
func line(text []byte) (first, rest []byte) {
	first, rest, _ = bytes.Cut(text, []byte{'\n'})
	return bytes.TrimRight(first, " \t\r"), rest
}

// invalid returns the fault for front matter that cannot be parsed, or has a member of the wrong type.
func invalid(format string, args ...any) *fault.Fault {
	return fault.IngestInvalid.New("front matter is not valid: "+format, args...)
}

// TOML converts front matter in TOML to a JSON object with sorted members. Dates and times become strings; inf and
// nan are refused. The error is IngestInvalid.
func TOML(front []byte) ([]byte, error) {
	var top map[string]any
	if err := toml.Unmarshal(front, &top); err != nil {
		return nil, invalid("%s", clip(err.Error()))
	}
	return appendValue(nil, top, 0)
}

func appendValue(dst []byte, v any, depth int) ([]byte, error) {
	if depth > maxNesting {
		return nil, invalid("it nests deeper than %d", maxNesting)
	}
	var err error
	switch v := v.(type) {
	case map[string]any:
		dst = append(dst, '{')
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(schema.AppendString(dst, name), ':')
			if dst, err = appendValue(dst, v[name], depth+1); err != nil {
				return nil, err
			}
		}
		return append(dst, '}'), nil
	case []any:
		dst = append(dst, '[')
		for i, item := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = appendValue(dst, item, depth+1); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	case string:
		return schema.AppendString(dst, v), nil
	case int64:
		return strconv.AppendInt(dst, v, 10), nil
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return nil, invalid("inf and nan are not taken")
		}
		return strconv.AppendFloat(dst, v, 'g', -1, 64), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case encoding.TextMarshaler: // dates and times
		text, err := v.MarshalText()
		if err != nil {
			return nil, invalid("%v", err)
		}
		return schema.AppendString(dst, string(text)), nil
	}
	return nil, invalid("a value of type %T is not taken", v)
}

// maxNesting is the deepest nesting of front matter. A reply nests it further.
const maxNesting = 32

// YAML converts front matter in YAML to a JSON object. It keeps the order of members and the text of numbers. It accepts only YAML
// with one meaning in JSON: no anchors, aliases, merge keys or tags, no second document, no duplicate keys or keys that are not
// strings, no numbers that are not valid JSON (0x1f, 1_000, .inf, 012). Dates become strings. Empty front matter becomes {}.
// The error is IngestInvalid with the line number.
func YAML(front []byte) ([]byte, error) {
	var doc yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(front))
	err := d.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return []byte("{}"), nil
	}
	if err != nil {
		return nil, invalid("%s", clip(err.Error()))
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, invalid("it has more than one document")
	}
	top := doc.Content[0]
	if top.Kind == yaml.ScalarNode && top.ShortTag() == "!!null" && top.Value == "" {
		return []byte("{}"), nil
	}
	if top.Kind != yaml.MappingNode {
		return nil, invalidNode(top, "it must be a mapping")
	}
	return appendNode(nil, top, 0)
}

// invalidNode returns the fault for a node. It adds one to the line number for the line of the fence.
func invalidNode(n *yaml.Node, format string, args ...any) *fault.Fault {
	return invalid("line %d: %s", n.Line+1, fmt.Sprintf(format, args...))
}

func appendNode(dst []byte, n *yaml.Node, depth int) ([]byte, error) {
	switch {
	case depth > maxNesting:
		return nil, invalidNode(n, "it nests deeper than %d", maxNesting)
	case n.Kind == yaml.AliasNode, n.Anchor != "":
		return nil, invalidNode(n, "anchors and aliases are not taken")
	case n.Style&yaml.TaggedStyle != 0:
		return nil, invalidNode(n, "tags are not taken")
	}
	switch n.Kind {
	case yaml.MappingNode:
		return appendMapping(dst, n, depth)
	case yaml.SequenceNode:
		dst = append(dst, '[')
		for i, item := range n.Content {
			if i > 0 {
				dst = append(dst, ',')
			}
			var err error
			if dst, err = appendNode(dst, item, depth+1); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	default:
		return appendScalar(dst, n)
	}
}

func appendMapping(dst []byte, n *yaml.Node, depth int) ([]byte, error) {
	seen := make(map[string]bool, len(n.Content)/2)
	dst = append(dst, '{')
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case key.Kind != yaml.ScalarNode, key.Anchor != "", key.Style&yaml.TaggedStyle != 0, key.ShortTag() != "!!str":
			return nil, invalidNode(key, "a key must be a string")
		case seen[key.Value]:
			return nil, invalidNode(key, "the key %q comes twice", clip(key.Value))
		}
		seen[key.Value] = true
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(schema.AppendString(dst, key.Value), ':')
		var err error
		if dst, err = appendNode(dst, n.Content[i+1], depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

func appendScalar(dst []byte, n *yaml.Node) ([]byte, error) {
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
		return schema.AppendString(dst, n.Value), nil
	case "!!null":
		return append(dst, "null"...), nil
	case "!!bool":
		if n.Value[0] == 't' || n.Value[0] == 'T' {
			return append(dst, "true"...), nil
		}
		return append(dst, "false"...), nil
	case "!!int", "!!float":
		if c := n.Value[0]; c != '-' && (c < '0' || c > '9') || !schema.Valid([]byte(n.Value)) {
			return nil, invalidNode(n, "write the number %q as JSON does, or in quotes", clip(n.Value))
		}
		return append(dst, n.Value...), nil
	}
	return nil, invalidNode(n, "%q is not taken", clip(n.Value))
}

// clip shortens text of a file for an error message.
func clip(s string) string {
	const most = 128 // bytes
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
