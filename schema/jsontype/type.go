// Package jsontype describes the JSON form of a Go type.
//
// The decoder, the JSON Schema and the filter for the journal come from the one declaration: what the decoder accepts
// is what the schema describes, and a member without a tag that says otherwise is withheld from the journal. The
// scanner beneath the decoder is the only JSON grammar of the tree; texts that it does not recognise go to the library.
package jsontype

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Value is one raw JSON value, kept as it was written.
type Value []byte

// MarshalJSON returns v itself, or null if it is empty.
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

// MaybeText is a text or null, for a member that is always present.
type MaybeText string

// MarshalJSON returns s as a JSON string, or null if it is empty.
func (s MaybeText) MarshalJSON() ([]byte, error) {
	if s == "" {
		return []byte("null"), nil
	}
	return AppendString(nil, string(s)), nil
}

// Decimal is a number with all its digits, exactly as written: a float64 holds only 17. The empty
// one is 0.
type Decimal string

// MarshalJSON returns d as a JSON number.
func (d Decimal) MarshalJSON() ([]byte, error) { return []byte(cmp.Or(d, "0")), nil }

// Float returns the nearest number that a float64 holds.
func (d Decimal) Float() float64 {
	f, _ := finiteNumber([]byte(cmp.Or(d, "0")))
	return f
}

// shape is what a value must look like in JSON.
type shape uint8

const (
	anything shape = iota
	text
	integer
	numeric
	boolean
	array
	record     // a fixed set of members, all known
	dictionary // any names, values of one type
)

// Type describes the data of one side of a syscall. It is made from a Go struct, and both the decoder and the JSON
// Schema are made from it: what one accepts is what the other describes.
//
// Struct tags: `json:"name"` names the member; with ",omitzero" it is optional, else required. `doc` is its description.
// `min` and `max` bound a number, `minlen` and `maxlen` the characters of a string, `enum` lists the allowed strings,
// separated by spaces. `null:"allowed"` has a member that is a pointer to an integer accept null, which stands for none. Embedded
// structs add their members. `short:"name"` is for a struct: a string stands for one with that member alone. `instead:"name"` is for
// an optional member that may stand in place of another optional one: one of the two is required.
//
// `keep` says what of the member's value may stand in the journal (see Redact): "always" all of it, "applied" all of
// it if the call succeeded, "never" nothing, "headers" HTTP headers without credentials that are not sealed, "url" a
// URL without its user and password. A member without it is withheld. Of a kept value that is an object, an array or
// a dictionary, the members inside decide for themselves.
type Type struct {
	goType reflect.Type
	shape  shape
	doc    string

	fields []field  // of an object, in the order of the struct
	short  int      // of an object: the field that a bare string sets, or -1
	either [][2]int // of an object: two fields of which one is required; at most one such pair
	elem   *Type    // of an array or a dictionary

	// What Redact does to a value, of a call that succeeded or failed: computed once, so that a type that withholds
	// nothing costs nothing.
	changes [2]bool // it withholds a member, or a part of one
	omits   [2]bool // it withholds the whole member

	min, max       float64 // of an integer or a number
	minLen, maxLen int     // of a text, in characters; maxLen 0 is unlimited
	orNull         bool    // of a text, or of a member that is a pointer: whether null is accepted as no value
	enum           []string
}

type field struct {
	name     string
	index    []int
	required bool
	instead  string // the member that this one may replace, or ""
	keep     keep
	filter   func(value []byte) []byte // of a kept value, what may be shown; nil: all
	pointer  bool
	typ      *Type
}

// keep says when the journal may hold a value.
type keep uint8

const (
	undecided keep = iota // as never
	keepNever
	keepApplied
	keepAlways
)

// withheld reports whether the whole field is left out, for a failed call or for any.
func (f *field) withheld(failed bool) bool {
	return f.keep < keepApplied || f.keep == keepApplied && failed
}

// maxSafe is the largest integer that every JSON reader represents exactly (RFC 8259, section 6).
const maxSafe = 1<<53 - 1

const maxFloat = 0x1p1023 * (1 + (1 - 0x1p-52))

// Of describes the Go type T. It panics on what has no place on the wire, so it belongs in tables that a test covers.
func Of[T any]() *Type { return describe(reflect.TypeFor[T](), "") }

// GoType is the Go type that t was made from.
func (t *Type) GoType() reflect.Type { return t.goType }

// Anything reports whether t is any JSON value.
func (t *Type) Anything() bool { return t.shape == anything }

// HasText reports whether t is an object with a member of that name which is a string.
func (t *Type) HasText(name string) bool {
	i := t.find([]byte(name))
	return i >= 0 && t.fields[i].typ.shape == text
}

func describe(t reflect.Type, tag reflect.StructTag) *Type {
	d := &Type{goType: t, doc: tag.Get("doc")}
	switch {
	case t == reflect.TypeFor[Value]():
		d.shape = anything
	case t == reflect.TypeFor[Decimal](), t.Kind() == reflect.Float64:
		d.shape, d.min, d.max = numeric, bound(tag, "min", -maxFloat), bound(tag, "max", maxFloat)
	case t.Kind() == reflect.String:
		d.shape, d.enum, d.orNull = text, strings.Fields(tag.Get("enum")), t == reflect.TypeFor[MaybeText]()
		d.minLen, d.maxLen = int(bound(tag, "minlen", 0)), int(bound(tag, "maxlen", 0))
	case t.Kind() == reflect.Bool:
		d.shape = boolean
	case t.Kind() == reflect.Int64:
		d.shape, d.min, d.max = integer, bound(tag, "min", -maxSafe), bound(tag, "max", maxSafe)
	case t.Kind() == reflect.Slice:
		d.shape, d.elem = array, describe(t.Elem(), innerTag(tag))
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String:
		d.shape, d.elem = dictionary, describe(t.Elem(), innerTag(tag))
	case t.Kind() == reflect.Struct:
		d.shape, d.fields, d.short = record, structFields(t, nil), -1
		if name, ok := tag.Lookup("short"); ok {
			d.short = d.find([]byte(name))
		}
		for i, f := range d.fields {
			if f.instead != "" {
				d.either = append(d.either, [2]int{d.find([]byte(f.instead)), i})
			}
			if len(d.either) > 1 {
				panic(fmt.Sprintf("jsontype: %v has two pairs of members of which one is required", t)) // the JSON Schema would need more than an anyOf
			}
		}
	default:
		panic(fmt.Sprintf("jsontype: %v has no place on the wire", t))
	}
	d.withholding()
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
			panic(fmt.Sprintf("jsontype: %v.%s has no name on the wire", t, sf.Name))
		}
		f := field{name: name, index: index, required: option != "omitzero", instead: sf.Tag.Get("instead"), pointer: sf.Type.Kind() == reflect.Pointer}
		ft := sf.Type
		if f.pointer {
			ft = ft.Elem()
		}
		f.typ = describe(ft, sf.Tag)
		if _, ok := sf.Tag.Lookup("null"); ok {
			if !f.pointer || f.typ.shape != integer {
				panic(fmt.Sprintf("jsontype: %v.%s accepts null, but is no pointer to an integer", t, sf.Name))
			}
			f.typ.orNull = true
		}
		f.keep, f.filter = keepOf(sf)
		fields = append(fields, f)
	}
	return fields
}

// keepOf is what the tag `keep` says.
func keepOf(sf reflect.StructField) (k keep, filter func(value []byte) []byte) {
	switch tag, decided := sf.Tag.Lookup("keep"); {
	case !decided:
		return undecided, nil
	case tag == "always":
		return keepAlways, nil
	case tag == "applied":
		return keepApplied, nil
	case tag == "never":
		return keepNever, nil
	case tag == "headers":
		return keepAlways, shownHeaders
	case tag == "url":
		return keepAlways, shownURL
	default:
		panic(fmt.Sprintf("jsontype: %s has keep %q, want always, applied, never, headers or url", sf.Name, tag))
	}
}

func bound(tag reflect.StructTag, key string, otherwise float64) float64 {
	s, ok := tag.Lookup(key)
	if !ok {
		return otherwise
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic(fmt.Sprintf("jsontype: bad %s bound %q", key, s))
	}
	return f
}
