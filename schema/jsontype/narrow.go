package jsontype

import "reflect"

// New returns a pointer to a zero value of the Go type.
func (t *Type) New() any { return reflect.New(t.goType).Interface() }

// Narrow returns t, an object, with the members that are kept. One in whose place another could stand is required without that. It is
// for a JSON Schema: the decoder of t is another.
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
