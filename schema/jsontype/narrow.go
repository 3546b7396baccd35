package jsontype

import "reflect"

// New returns a pointer to a zero value of the Go type.
func (t *Type) New() any { return reflect.New(t.goType).Interface() }

// Narrow returns t, an object, with the members that pick keeps, of which those that it needs are required. It is for a JSON
// Schema: the decoder of t is another.
func (t *Type) Narrow(pick func(name string) (kept, need bool)) *Type {
	narrow := *t
	narrow.fields = nil
	for _, f := range t.fields {
		if kept, need := pick(f.name); kept {
			f.required = f.required || need
			narrow.fields = append(narrow.fields, f)
		}
	}
	return &narrow
}
