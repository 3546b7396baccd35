package schema

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/promptware-os/pwos/schema/jsontype"
)

// Types of members, and the description of a data type.
type (
	// Value is one raw JSON value, kept as it was written.
	Value = jsontype.Value
	// MaybeText is a text, or null: for a member that is always present.
	MaybeText = jsontype.MaybeText
	// Decimal is a number with all its digits, exactly as written.
	Decimal = jsontype.Decimal
	// Type describes the data of one side of a syscall.
	Type = jsontype.Type
)

// TypeOf is jsontype.Of.
func TypeOf[T any]() *Type { return jsontype.Of[T]() }

// Marshal encodes v, one of the data types of this package, as one JSON value on one line. The same v always gives
// the same bytes: members of maps are sorted.
func Marshal(v any) ([]byte, error) {
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("marshal %T: %w", v, err)
	}
	return data, nil
}

// Compact returns a JSON value without the white space around its tokens, which stay as they were written.
func Compact(v Value) (Value, error) {
	out := jsontext.Value(bytes.Clone(v))
	if err := out.Compact(); err != nil {
		return nil, fmt.Errorf("compact JSON: %w", err)
	}
	return Value(out), nil
}

// Same reports whether two JSON values are equal except for the order of members, white space, and escapes in
// strings. Numbers are compared as text.
func Same(a, b Value) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, y := jsontext.Value(bytes.Clone(a)), jsontext.Value(bytes.Clone(b))
	for _, v := range []*jsontext.Value{&x, &y} {
		if err := v.Format(jsontext.ReorderRawObjects(true), jsontext.PreserveRawStrings(false)); err != nil {
			return false // an invalid value equals no other
		}
	}
	return bytes.Equal(x, y)
}

// appendValue appends the JSON of v, see Marshal. It panics on values that JSON cannot represent, such as an infinite
// number.
func appendValue(dst []byte, v any) []byte {
	data, err := Marshal(v)
	if err != nil {
		panic("schema: " + err.Error())
	}
	return append(dst, data...)
}
