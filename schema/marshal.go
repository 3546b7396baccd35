package schema

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Marshal writes v, one of the data types of this package, as one JSON value on one line. The same v always gives the
// same bytes: members of maps come in ascending order.
func Marshal(v any) ([]byte, error) {
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("marshal %T: %w", v, err)
	}
	return data, nil
}

// Same reports whether two JSON values are the same whatever the order of their members, the white space and the escapes in
// their strings. Numbers are compared as they are written.
func Same(a, b Value) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, y := jsontext.Value(bytes.Clone(a)), jsontext.Value(bytes.Clone(b))
	for _, v := range []*jsontext.Value{&x, &y} {
		if err := v.Format(jsontext.ReorderRawObjects(true), jsontext.PreserveRawStrings(false)); err != nil {
			return false // it is not valid, so it is not what another one is
		}
	}
	return bytes.Equal(x, y)
}
