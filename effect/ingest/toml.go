package ingest

import (
	"encoding"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/pelletier/go-toml/v2"

	"github.com/promptware-os/pwos/schema"
)

// TOML turns front matter in TOML into one JSON object, members in ascending order. Dates and times are strings; inf and
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
