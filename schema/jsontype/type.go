// Package jsontype describes the JSON form of a Go type.
//
// The decoder, the JSON Schema and the filter for the journal are derived from one declaration. The decoder accepts exactly what
// the schema describes, and a member is withheld from the journal unless its tag says otherwise. The
// scanner of the decoder is the only JSON grammar of the tree; the library decodes texts that it does not accept.
package jsontype

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
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

// Decimal is a number as text with all its digits, of which a float64 has only 17. The empty
// Decimal is 0.
type Decimal string

// MarshalJSON returns d as a JSON number.
func (d Decimal) MarshalJSON() ([]byte, error) { return []byte(cmp.Or(d, "0")), nil }

// Float returns the nearest float64.
func (d Decimal) Float() float64 {
	f, _ := finiteNumber([]byte(cmp.Or(d, "0")))
	return f
}

// shape is the form of a value in JSON.
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

// Type describes the data of a request or a reply of a syscall. It is derived from a Go type, and both the decoder and the JSON
// Schema are derived from it, so that the decoder accepts exactly what the schema describes.
//
// Struct tags: `json:"name"` names the member; with ",omitzero" it is optional, else required. `doc` is its description.
// `min` and `max` bound a number, `minlen` and `maxlen` the characters of a string, `enum` lists the allowed strings,
// separated by spaces. With `null:"allowed"`, a member that is a pointer to an integer accepts null as no value. Embedded
// structs add their members. With `short:"name"`, a struct accepts a string in place of an object with only that member.
// `instead:"name"` is for an optional member that is an alternative to another optional one: one of the two is required.
//
// `keep` defines which part of the member's value the journal may contain (see Redact): "always" all of it, "applied" all of
// it if the call succeeded, "never" nothing, "headers" HTTP headers without credentials that are not sealed, "url" a
// URL without its user and password, "arguments" those of a program, without what looks secret and bounded. A member without the tag is withheld. In a kept value that is an object, an array or
// a dictionary, the tags of the inner members apply.
type Type struct {
	goType reflect.Type
	shape  shape
	doc    string

	fields []field  // of an object, in the order of the struct
	short  int      // of an object: the field that a bare string sets, or -1
	either [][2]int // of an object: two fields of which one is required; at most one such pair
	elem   *Type    // of an array or a dictionary

	// What Redact changes in the data of a call that succeeded (0) or failed (1), computed once.
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
	filter   func(value []byte) []byte // returns the part of a kept value that the journal may contain; nil: all
	pointer  bool
	typ      *Type
}

// keep defines when the journal may contain a value.
type keep uint8

const (
	undecided keep = iota // no tag: like keepNever
	keepNever
	keepApplied
	keepAlways
)

// withheld reports whether the whole field is withheld from the record of a call that failed or succeeded.
func (f *field) withheld(failed bool) bool {
	return f.keep < keepApplied || f.keep == keepApplied && failed
}

// maxSafe is the largest integer that every JSON reader represents exactly (RFC 8259, section 6).
const maxSafe = 1<<53 - 1

const maxFloat = 0x1p1023 * (1 + (1 - 0x1p-52))

// Of returns the description of the Go type T, the same one each time. It panics if T is not supported, so a test must call it for every
// type.
func Of[T any]() *Type {
	t := reflect.TypeFor[T]()
	known, ok := described.Load(t)
	if !ok {
		known, _ = described.LoadOrStore(t, describe(t, ""))
	}
	return known.(*Type)
}

// described has the descriptions that Of has made, by Go type: to make one takes longer than to decode a value.
var described sync.Map

// GoType returns the Go type that t describes.
func (t *Type) GoType() reflect.Type { return t.goType }

// Anything reports whether t accepts any JSON value.
func (t *Type) Anything() bool { return t.shape == anything }

// HasText reports whether t is an object with a string member of the given name.
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

// innerTag returns the part of the tag of a list or dictionary that applies to its elements: the bounds, not the description.
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

// keepOf returns the value of the tag `keep`.
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
	case tag == "arguments":
		return keepAlways, shownArguments
	default:
		panic(fmt.Sprintf("jsontype: %s has keep %q, want always, applied, never, headers, url or arguments", sf.Name, tag))
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
