package jsontype

import (
	"math"
	"reflect"
	"strconv"
)

// AppendJSONSchema appends t as a JSON Schema (draft 2020-12, of which it uses what draft 7 has too): a description for
// every member that has one, `required` and `additionalProperties: false` for every object (MESSAGE 4.8).
func (t *Type) AppendJSONSchema(dst []byte) []byte {
	dst = append(dst, '{')
	switch t.shape {
	case anything:
	case text:
		if t.orNull {
			dst = append(dst, `"type":["string","null"]`...)
		} else {
			dst = append(dst, `"type":"string"`...)
		}
		dst = t.appendTextBounds(dst)
	case integer:
		if t.orNull {
			dst = append(dst, `"type":["integer","null"]`...)
		} else {
			dst = append(dst, `"type":"integer"`...)
		}
		dst = t.appendNumberBounds(dst)
	case numeric:
		dst = append(dst, `"type":"number"`...)
		dst = t.appendNumberBounds(dst)
	case boolean:
		dst = append(dst, `"type":"boolean"`...)
	case array:
		dst = append(dst, `"type":"array","items":`...)
		dst = t.elem.AppendJSONSchema(dst)
	case dictionary:
		dst = append(dst, `"type":"object","additionalProperties":`...)
		dst = t.elem.AppendJSONSchema(dst)
	case record:
		if t.short >= 0 {
			dst = t.fields[t.short].typ.AppendJSONSchema(append(dst, `"anyOf":[`...))
			dst = append(t.appendObject(append(dst, `,{`...)), `}]`...)
			break
		}
		dst = t.appendObject(dst)
	}
	if t.doc != "" {
		if t.shape != anything {
			dst = append(dst, ',')
		}
		dst = AppendString(append(dst, `"description":`...), t.doc)
	}
	return append(dst, '}')
}

func (t *Type) appendObject(dst []byte) []byte {
	dst = append(dst, `"type":"object","properties":{`...)
	for i, f := range t.fields {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendString(dst, f.name), ':')
		dst = f.typ.AppendJSONSchema(dst)
	}
	dst = append(dst, `},"required":[`...)
	first := true
	for _, f := range t.fields {
		if !f.required {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = AppendString(dst, f.name)
	}
	dst = append(dst, `],"additionalProperties":false`...)
	return t.appendAlternatives(dst)
}

// appendAlternatives appends the two members of which one is required.
func (t *Type) appendAlternatives(dst []byte) []byte {
	if len(t.either) == 0 {
		return dst
	}
	pair := t.either[0]
	dst = AppendString(append(dst, `,"anyOf":[{"required":[`...), t.fields[pair[0]].name)
	dst = AppendString(append(dst, `]},{"required":[`...), t.fields[pair[1]].name)
	return append(dst, `]}]`...)
}

func (t *Type) appendTextBounds(dst []byte) []byte {
	if t.minLen > 0 {
		dst = strconv.AppendInt(append(dst, `,"minLength":`...), int64(t.minLen), 10)
	}
	if t.maxLen > 0 {
		dst = strconv.AppendInt(append(dst, `,"maxLength":`...), int64(t.maxLen), 10)
	}
	for i, word := range t.enum {
		if i == 0 {
			dst = append(dst, `,"enum":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = AppendString(dst, word)
		if i == len(t.enum)-1 {
			dst = append(dst, ']')
		}
	}
	return dst
}

func (t *Type) appendNumberBounds(dst []byte) []byte {
	dst = appendFloat(append(dst, `,"minimum":`...), t.min)
	return appendFloat(append(dst, `,"maximum":`...), t.max)
}

// appendFloat appends f. It writes a large bound with an exponent instead of up to 300 digits.
func appendFloat(dst []byte, f float64) []byte {
	format := byte('f')
	if math.Abs(f) > 1<<63 {
		format = 'e'
	}
	return strconv.AppendFloat(dst, f, format, -1, 64)
}

// New returns a pointer to a zero value of the Go type.
func (t *Type) New() any { return reflect.New(t.goType).Interface() }

// Narrow returns t, an object, with only the members that are kept. If the alternative of a member
// is removed, the member is required. The result serves for a JSON Schema, not for decoding.
func (t *Type) Narrow(kept func(name string) bool) *Type {
	narrow := *t
	narrow.fields, narrow.either = nil, nil
	for i, f := range t.fields {
		for _, pair := range t.either {
			f.required = f.required || i == pair[0] && !kept(t.fields[pair[1]].name)
		}
		if kept(f.name) {
			narrow.fields = append(narrow.fields, f)
		}
	}
	return &narrow
}
