package schema

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Value is one raw JSON value, kept as it was written.
type Value []byte

// MarshalJSON returns v itself, null where it is empty.
func (v Value) MarshalJSON() ([]byte, error) {
	if len(v) == 0 {
		return []byte("null"), nil
	}
	return v, nil
}

// UnmarshalJSON copies raw into v.
func (v *Value) UnmarshalJSON(raw []byte) error {
	*v = append((*v)[:0], raw...)
	return nil
}

// MaybeText is a text, or null where there is none: for a member that is always there.
type MaybeText string

// MarshalJSON returns s as a JSON string, null where it is empty.
func (s MaybeText) MarshalJSON() ([]byte, error) {
	if s == "" {
		return []byte("null"), nil
	}
	return appendString(nil, string(s)), nil
}

// shape is what a value must look like in JSON.
type shape uint8

const (
	anything shape = iota
	text
	integer
	number
	boolean
	array
	object     // a fixed set of members, all known
	dictionary // any names, values of one type
)

// Type describes the data of one side of a syscall. It is made from a Go struct, and both the decoder and the JSON
// Schema are made from it: what one accepts is what the other describes.
//
// Struct tags: `json:"name"` names the member; with ",omitzero" it is optional, else required. `doc` is its description.
// `min` and `max` bound a number, `minlen` and `maxlen` the characters of a string, `enum` lists the allowed strings,
// separated by spaces. `null:"allowed"` has a member that is a pointer accept null, which stands for none. `secret:"always"` keeps the value out of journal and logs, `secret:"failed"` that of a call which
// failed, where its data is Confidential: a replay does not need it. `secret:"headers"` is for a dictionary of HTTP headers:
// those that let somebody in are kept out unless they are sealed. `secret:"url"` is for a URL: who logs in with it, and with
// what, is kept out. Embedded structs add their members. `short:"name"` is for a struct: a value that is no object stands for one
// with that member alone.
type Type struct {
	goType reflect.Type
	shape  shape
	doc    string

	secret secrecy // of an object: the strictest of its fields
	partly bool    // of an object: parts of one of its fields are secret
	fields []field // of an object, in the order of the struct
	short  int     // of an object: the field that a string stands for; -1: none
	elem   *Type   // of an array or a dictionary

	min, max       float64 // of an integer or a number
	minLen, maxLen int     // of a text, in characters; maxLen 0 is unlimited
	orNull         bool    // of a text, or of a member that is a pointer: null stands for none
	enum           []string
}

type field struct {
	name     string
	index    []int
	required bool
	secret   secrecy
	shown    func(value []byte) []byte // its value without the parts that are secret, nil where none is
	pointer  bool
	typ      *Type
}

// secrecy says when a value is kept out of journal and logs.
type secrecy uint8

const (
	open secrecy = iota
	secretIfFailed
	secretAlways
)

// maxSafe is the largest integer that every JSON reader represents exactly (RFC 8259, section 6).
const maxSafe = 1<<53 - 1

const maxFloat = 0x1p1023 * (1 + (1 - 0x1p-52))

// TypeOf describes the Go type T. It panics on what has no place on the wire, so it belongs in tables that are built
// at start and covered by a test.
func TypeOf[T any]() *Type { return describe(reflect.TypeFor[T](), "") }

func describe(t reflect.Type, tag reflect.StructTag) *Type {
	d := &Type{goType: t, doc: tag.Get("doc")}
	switch {
	case t == reflect.TypeFor[Value]():
		d.shape = anything
	case t.Kind() == reflect.String:
		d.shape, d.enum, d.orNull = text, strings.Fields(tag.Get("enum")), t == reflect.TypeFor[MaybeText]()
		d.minLen, d.maxLen = int(bound(tag, "minlen", 0)), int(bound(tag, "maxlen", 0))
	case t.Kind() == reflect.Bool:
		d.shape = boolean
	case t.Kind() == reflect.Int64:
		d.shape, d.min, d.max = integer, bound(tag, "min", -maxSafe), bound(tag, "max", maxSafe)
	case t.Kind() == reflect.Float64:
		d.shape, d.min, d.max = number, bound(tag, "min", -maxFloat), bound(tag, "max", maxFloat)
	case t.Kind() == reflect.Slice:
		d.shape, d.elem = array, describe(t.Elem(), innerTag(tag))
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String:
		d.shape, d.elem = dictionary, describe(t.Elem(), innerTag(tag))
	case t.Kind() == reflect.Struct:
		d.shape, d.fields, d.short = object, structFields(t, nil), -1
		if name, ok := tag.Lookup("short"); ok {
			d.short = d.find([]byte(name))
		}
		for _, f := range d.fields {
			d.secret, d.partly = max(d.secret, f.secret), d.partly || f.shown != nil
		}
	default:
		panic(fmt.Sprintf("schema: %v has no place on the wire", t))
	}
	return d
}

// innerTag is what the tag of a list or a dictionary says about its elements: the bounds, not the description.
func innerTag(tag reflect.StructTag) reflect.StructTag {
	return reflect.StructTag(strings.ReplaceAll(string(tag), `doc:"`, `list:"`))
}

func structFields(t reflect.Type, at []int) []field {
	var fields []field
	for i := range t.NumField() {
		sf := t.Field(i)
		if !sf.Anonymous && !sf.IsExported() {
			continue // not on the wire
		}
		index := append(append([]int(nil), at...), i)
		if sf.Anonymous {
			fields = append(fields, structFields(sf.Type, index)...)
			continue
		}
		name, option, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if name == "" {
			panic(fmt.Sprintf("schema: %v.%s has no name on the wire", t, sf.Name))
		}
		f := field{name: name, index: index, required: option != "omitzero", pointer: sf.Type.Kind() == reflect.Pointer}
		ft := sf.Type
		if f.pointer {
			ft = ft.Elem()
		}
		f.typ = describe(ft, sf.Tag)
		if _, ok := sf.Tag.Lookup("null"); ok {
			if !f.pointer || f.typ.shape != integer {
				panic(fmt.Sprintf("schema: %v.%s accepts null, but is no pointer to an integer", t, sf.Name))
			}
			f.typ.orNull = true
		}
		f.secret, f.shown = secrecyOf(sf)
		fields = append(fields, f)
	}
	return fields
}

// secrecyOf is what the tag `secret` says: when the value is left out, and what is shown of it otherwise, where not all is.
func secrecyOf(sf reflect.StructField) (s secrecy, shown func(value []byte) []byte) {
	switch tag := sf.Tag.Get("secret"); tag {
	case "":
		return open, nil
	case "headers":
		return open, shownHeaders
	case "url":
		return open, shownURL
	case "failed":
		return secretIfFailed, nil
	case "always":
		return secretAlways, nil
	default:
		panic(fmt.Sprintf("schema: %s has secret %q, want always, failed, headers or url", sf.Name, tag))
	}
}

func bound(tag reflect.StructTag, key string, otherwise float64) float64 {
	s, ok := tag.Lookup(key)
	if !ok {
		return otherwise
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic(fmt.Sprintf("schema: bad %s bound %q", key, s))
	}
	return f
}
